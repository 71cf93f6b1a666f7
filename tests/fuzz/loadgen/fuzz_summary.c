/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a summary: it is refused with a sentence, or it becomes a summary that is written
 * and read back to the same text, merged with itself to twice its counts, and compared with itself
 * without a difference. Sweeps by the same text too.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/results/statistics/comparison.h"
#include "loadgen/results/summary/summary_merge.h"
#include "loadgen/results/summary/sweep_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static char *written(const struct summary *summary, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);

    require(out != NULL);
    summary_write(out, summary);
    fclose(out);
    return text;
}

/* What was read and written is stable: a second reading gives the same text. */
static void check_round_trip(const struct summary *summary)
{
    char error[SUMMARY_ERROR_BYTES];
    struct summary again;
    size_t length;
    size_t length_again;
    char *text = written(summary, &length);

    require(summary_parse(text, length, "again", &again, error) == 0);
    char *text_again = written(&again, &length_again);
    struct summary third;

    require(summary_parse(text_again, length_again, "third", &third, error) == 0);
    require(third.flows_count == summary->flows_count);
    for (size_t i = 0; i < third.flows_count; i++) {
        require(strcmp(third.flows[i].name, summary->flows[i].name) == 0);
        require(third.flows[i].seconds_count == summary->flows[i].seconds_count);
        require(memcmp(&third.flows[i].total->latency.counts,
                       &summary->flows[i].total->latency.counts,
                       sizeof(third.flows[i].total->latency.counts)) == 0);
    }
    free(text);
    free(text_again);
    summary_fini(&again);
    summary_fini(&third);
}

static void check_merge(const struct summary *summary)
{
    /* The same run twice: the parts are only read. */
    struct summary parts[2] = {*summary, *summary};
    struct summary merged;

    require(fabs(summary_overlap_s(parts, 2) - summary->measured_s) <=
            1e-9 * (summary->measured_s + summary->began_unix_s + 1));
    summary_merge(&merged, parts, 2);
    require(merged.flows_count == summary->flows_count);
    for (size_t i = 0; i < merged.flows_count; i++) {
        require(merged.flows[i].offered == 2 * summary->flows[i].offered);
        require(merged.flows[i].total->latency.total == 2 * summary->flows[i].total->latency.total);
    }
    summary_fini(&merged);
}

static void check_comparison(const struct summary *summary)
{
    struct comparison rows[COMPARISON_METRICS];

    for (size_t i = 0; i < summary->flows_count; i++) {
        comparison_make(summary, &summary->flows[i], summary, &summary->flows[i], rows);
        comparison_correct(rows, COMPARISON_METRICS);
        for (int m = 0; m < COMPARISON_METRICS; m++)
            require(comparison_judge(&rows[m]) != COMPARISON_SHOWN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[SUMMARY_ERROR_BYTES] = "";
    struct summary summary;
    struct sweep sweep;
    json_t *json = json_loadb((const char *)data, size, 0, NULL);

    if (summary_parse((const char *)data, size, "fuzz", &summary, error) == 0) {
        check_round_trip(&summary);
        check_merge(&summary);
        check_comparison(&summary);
    } else {
        require(strncmp(error, "fuzz:", 5) == 0 && summary.flows_count == 0);
    }
    summary_fini(&summary);
    if (json && sweep_from_json(json, "fuzz", &sweep, error) == 0) {
        sweep_knee(&sweep);
        sweep_fini(&sweep);
    }
    json_decref(json);
    return 0;
}
