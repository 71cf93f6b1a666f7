/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown: the live table on small screens, the final table, warnings; and files of results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loadgen/results/live.h"
#include "loadgen/results/output.h"
#include "loadgen/results/table.h"
#include "loadgen/results/warnings.h"

#define FLOWS        5
#define SCREEN_BYTES 4096

static struct flow *flows[FLOWS];
static struct live_row rows[FLOWS];

static int make_rows(void **state)
{
    (void)state;
    for (int i = 0; i < FLOWS; i++) {
        flows[i] = calloc(1, sizeof(*flows[i]));
        assert_non_null(flows[i]);
        snprintf(flows[i]->spec.name, sizeof(flows[i]->spec.name), "flow-%d", i);
        meter_reset(&flows[i]->second);
        for (int k = 0; k <= i; k++)
            meter_add(&flows[i]->second, OUTCOME_OK, 1000000 * (uint64_t)(i + 1));
        rows[i] = (struct live_row){.flow = flows[i],
                                    .second = {.time_s = 3,
                                               .length_s = 1,
                                               .done = (uint64_t)i + 1,
                                               .in_flight = 2,
                                               .p50_ms = i + 1,
                                               .p99_ms = i + 1,
                                               .errors = 1}};
    }
    return 0;
}

static int free_rows(void **state)
{
    (void)state;
    for (int i = 0; i < FLOWS; i++)
        free(flows[i]);
    return 0;
}

/* The lines of a table, as a screen of that size gets them, without what moves the cursor. */
static size_t draw(size_t columns, size_t lines, char out[SCREEN_BYTES])
{
    struct results_options options = {.live = RESULTS_LIVE_TABLE, .duration_ns = 10000000000ULL};
    struct live live;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    live_init(&live, stream, &options);
    size_t drawn = live_draw(&live, 3, rows, FLOWS, columns, lines);

    live_fini(&live);
    fclose(stream);
    size_t used = 0;

    out[0] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *end = strstr(line, "\033[K");

        assert_non_null(end);
        *end = '\0';
        assert_true(strlen(line) < columns);
        used += (size_t)snprintf(out + used, SCREEN_BYTES - used, "%s\n", line);
    }
    free(text);
    return drawn;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void the_live_table_has_a_row_per_flow_and_a_total(void **state)
{
    char text[SCREEN_BYTES];

    (void)state;
    assert_int_equal(draw(100, 24, text), 2 + FLOWS + 1);
    assert_int_equal(count_lines(text), 2 + FLOWS + 1);
    assert_non_null(strstr(text, "[##################-----"));
    assert_non_null(strstr(text, "3 s of 10 s"));
    /* 15 replies: 1 of 1 ms, 2 of 2 ms ... the eighth of them took 4 ms, the last 5. */
    assert_non_null(
        strstr(text, "total                 15.0   4.00ms   5.00ms        5        0        10"));
}

static void a_small_screen_is_never_overrun(void **state)
{
    char text[SCREEN_BYTES];

    (void)state;
    for (size_t columns = 2; columns < 120; columns += 7)
        draw(columns, 24, text);
    for (size_t lines = 1; lines < 12; lines++) {
        size_t drawn = draw(80, lines, text);

        assert_int_equal(drawn, count_lines(text));
        assert_true(lines < 6 || drawn < lines);
    }
    draw(80, 8, text);
    assert_non_null(strstr(text, "and 2 more"));
}

static char *captured(void (*print)(FILE *, const struct summary *), const struct summary *summary)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    print(stream, summary);
    fclose(stream);
    return text;
}

static void kinds_retries_and_verification_are_in_the_table(void **state)
{
    struct summary summary;

    (void)state;
    summary_init(&summary, 1);
    summary.measured_s = 2;
    struct summary_flow *flow = &summary.flows[0];

    snprintf(flow->name, sizeof(flow->name), "mail");
    meter_add(flow->total, OUTCOME_OK, 2000000);
    meter_add(summary_kind(flow, "read")->meter, OUTCOME_OK, 2000000);
    char *text = captured(table_print, &summary);

    assert_null(strstr(text, "read"));
    free(text);
    meter_add(summary_kind(flow, "write")->meter, OUTCOME_REFUSED, 1000);
    flow->retried = 4;
    flow->verified = 7;
    text = captured(table_print, &summary);
    assert_non_null(strstr(text, "  read                        0.5        0.5    2.00ms"));
    assert_non_null(strstr(text, "  write                       0.5        0.0         -"));
    assert_non_null(strstr(text, "4 retries after refusals, 7 replies verified, 0 could not be\n"));
    free(text);
    summary_fini(&summary);
}

static void warnings_come_when_there_is_reason(void **state)
{
    struct summary summary;

    (void)state;
    summary_init(&summary, 1);
    struct summary_flow *flow = &summary.flows[0];

    snprintf(flow->name, sizeof(flow->name), "f");
    flow->open_loop = true;
    flow->offered = 1000;
    flow->late = flow->delayed = 10;
    summary.generator_cpu = 0.94;
    char *text = captured(warnings_print, &summary);

    assert_string_equal(text, "");
    free(text);
    flow->late = flow->delayed = 11;
    flow->unfinished = 1;
    flow->total->outcomes[OUTCOME_CORRUPT] = 3;
    summary.generator_cpu = 0.96;
    text = captured(warnings_print, &summary);
    assert_non_null(strstr(text, "11 of 1000 requests were made over 1 ms late"));
    assert_non_null(
        strstr(text, "11 of 1000 requests waited for concurrency=0 or for a connection"));
    assert_non_null(strstr(text, "1 requests had no reply"));
    assert_non_null(strstr(text, "3 replies held other data"));
    assert_non_null(strstr(text, "busy for 96 % of the time"));
    free(text);
    summary_fini(&summary);
}

/* ---------------------------------------------------------------- files */

static void a_file_takes_its_name_when_it_is_complete(void **state)
{
    char folder[] = "/tmp/spillload-test-XXXXXX";
    char path[64];
    char part[80];
    char text[16] = "";
    struct output output;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/out", folder);
    snprintf(part, sizeof(part), "%s.part", path);
    for (int complete = 0; complete < 2; complete++) {
        assert_int_equal(output_open(&output, path, true), 0);
        fputs("text", output.file);
        assert_true(output_flush(&output));
        assert_int_not_equal(access(path, F_OK), 0);
        if (complete)
            assert_true(output_finish(&output));
        output_drop(&output);
        assert_int_not_equal(access(part, F_OK), 0);
        assert_int_equal(access(path, F_OK) == 0, complete);
    }
    FILE *in = fopen(path, "r");

    assert_non_null(in);
    assert_non_null(fgets(text, sizeof(text), in));
    assert_string_equal(text, "text");
    fclose(in);
    unlink(path);
    snprintf(path, sizeof(path), "%s/none/out", folder);
    assert_int_equal(output_open(&output, path, true), -1);
    rmdir(folder);
}

static void a_full_disk_is_remembered(void **state)
{
    struct output output;

    (void)state;
    assert_int_equal(output_open(&output, "/dev/full", true), 0);
    fputs("text", output.file);
    assert_false(output_flush(&output));
    assert_true(output_flush(&output) == false);
    assert_false(output_finish(&output));
    assert_false(output_finish(&output));
    assert_int_equal(output_open(&output, NULL, true), 0);
    assert_true(output_finish(&output));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_live_table_has_a_row_per_flow_and_a_total, make_rows,
                                        free_rows),
        cmocka_unit_test_setup_teardown(a_small_screen_is_never_overrun, make_rows, free_rows),
        cmocka_unit_test(kinds_retries_and_verification_are_in_the_table),
        cmocka_unit_test(warnings_come_when_there_is_reason),
        cmocka_unit_test(a_file_takes_its_name_when_it_is_complete),
        cmocka_unit_test(a_full_disk_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
