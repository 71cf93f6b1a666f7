/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of load. Checked: what is read keeps its promises (order, sums, length above the last
 * time), written down and read again it is the same, and a replay of it comes in order, to an end
 * after as many requests as it holds. What is refused says so in one line and leaves nothing. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/arrival/arrival.h"
#include "loadgen/arrival/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPLAYED 2000

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void check_times(const struct trace *trace)
{
    for (size_t i = 1; i < trace->count; i++)
        check(trace->times_ns[i] >= trace->times_ns[i - 1], "times are in order");
    check(trace->length_ns > trace->times_ns[trace->count - 1], "the end is behind the last");
    check(trace->total == (double)trace->count, "as many requests as times");
}

static void check_rates(const struct trace *trace)
{
    double total = 0;

    check(trace->interval_ns > 0, "intervals have a length");
    check(trace->length_ns == trace->count * trace->interval_ns, "the length is the intervals'");
    for (size_t i = 0; i < trace->count; i++) {
        check(trace->rates_per_s[i] >= 0 && trace->rates_per_s[i] <= TRACE_MAX_RATE,
              "rates are in range");
        total += trace->rates_per_s[i] * (double)trace->interval_ns / 1e9;
    }
    check(fabs(total - trace->total) <= 1e-9 * total, "the total is the rates'");
}

static void check_replay(const struct trace *trace)
{
    struct arrival_spec spec = {.gaps = ARRIVAL_CONSTANT, .shape = ARRIVAL_TRACE, .trace = trace};
    struct arrival arrival;
    uint64_t before_ns = 0;
    uint64_t count = 0;
    uint64_t next_ns;

    arrival_init(&arrival, &spec, 1, 0);
    while (count < REPLAYED && (next_ns = arrival_next_ns(&arrival)) != ARRIVAL_NEVER) {
        check(next_ns >= before_ns, "requests come in order");
        check(next_ns < trace->length_ns, "requests come within the trace");
        before_ns = next_ns;
        count++;
    }
    check((double)count >= fmin(trace->total, REPLAYED) - 1 - 1e-6 * trace->total &&
              (double)count <= trace->total * (1 + 1e-6),
          "as many come as the trace holds");
}

/* As a file that holds the same, which is read and compared. */
static void check_again(const struct trace *trace)
{
    char error[TRACE_ERROR_BYTES];
    struct trace again;
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);

    check(file != NULL, "memory");
    if (trace->times)
        fprintf(file, "# spillload-trace: times ns\n");
    else
        fprintf(file, "# spillload-trace: rates %" PRIu64 "ns\n", trace->interval_ns);
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->times)
            fprintf(file, "%" PRIu64 "\n", trace->times_ns[i]);
        else
            fprintf(file, "%.17g\n", trace->rates_per_s[i]);
    }
    fclose(file);
    check(trace_parse(text, length, &again, error) == 0, error);
    check(again.count == trace->count && again.length_ns == trace->length_ns, "read again");
    check(!memcmp(trace->times ? (void *)again.times_ns : (void *)again.rates_per_s,
                  trace->times ? (void *)trace->times_ns : (void *)trace->rates_per_s,
                  trace->count * 8),
          "the same entries");
    trace_fini(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[TRACE_ERROR_BYTES] = "";
    char *copy = malloc(size ? size : 1); /* so that a read past the end is seen */
    struct trace trace;

    check(copy != NULL, "memory");
    if (size)
        memcpy(copy, data, size);
    int result = trace_parse(copy, size, &trace, error);

    free(copy);
    if (result != 0) {
        check(result == -EINVAL && error[0] && !strchr(error, '\n'), "one line says what is wrong");
        check(trace.count == 0 && !trace.times_ns && !trace.rates_per_s, "nothing is left");
        return 0;
    }
    check(trace.count > 0 && trace.count <= TRACE_MAX_ENTRIES, "there are entries");
    if (trace.times)
        check_times(&trace);
    else
        check_rates(&trace);
    check_replay(&trace);
    check_again(&trace);
    trace_fini(&trace);
    return 0;
}
