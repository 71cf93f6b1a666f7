/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the time series. */
#include "loadgen/results/series.h"

#include <math.h>
#include <string.h>

void series_latency(struct summary_second *second, const struct histogram *latency)
{
    const struct {
        double quantile;
        double *out;
    } wanted[] = {
        {0.5, &second->p50_ms},
        {0.9, &second->p90_ms},
        {0.99, &second->p99_ms},
    };
    size_t last = histogram_bucket(latency->max);
    size_t next = 0;
    uint64_t seen = 0;

    second->mean_ms = histogram_mean(latency) / 1e6;
    second->max_ms = latency->total ? (double)latency->max / 1e6 : 0;
    second->p50_ms = second->p90_ms = second->p99_ms = second->max_ms;
    for (size_t i = histogram_bucket(latency->min); latency->total && i <= last; i++) {
        uint64_t start = histogram_bucket_start(i);
        uint64_t half = (histogram_bucket_start(i + 1) - start) / 2;
        double middle = (double)(start + half);

        seen += latency->counts[i];
        while (next < 3 && (double)seen >= ceil(wanted[next].quantile * (double)latency->total)) {
            *wanted[next].out =
                fmin(fmax(middle, (double)latency->min), (double)latency->max) / 1e6;
            next++;
        }
        if (next == 3)
            return;
    }
}

void series_take(struct summary_second *second, const struct flow *flow)
{
    const struct meter *meter = &flow->second;

    second->done = meter->outcomes[OUTCOME_OK];
    second->refused = meter->outcomes[OUTCOME_REFUSED];
    second->errors = meter_errors(meter);
    second->in_flight = flow->in_flight;
    second->waiting = flow->backlog_count;
    second->bytes_in = meter->bytes_in;
    second->bytes_out = meter->bytes_out;
    series_latency(second, &meter->latency);
}

void series_csv_head(FILE *out)
{
    fputs("time_s,flow,offered,done,rate_per_s,mean_ms,p50_ms,p90_ms,p99_ms,max_ms,refused,errors,"
          "in_flight,waiting,bytes_in,bytes_out\r\n",
          out);
}

/* Quoted where it has to be, quotes doubled. */
static void csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void series_csv_line(FILE *out, const char *flow, const struct summary_second *second)
{
    fprintf(out, "%.6g,", second->time_s);
    csv_text(out, flow);
    fprintf(out, ",%llu,%llu,%.6g,", (unsigned long long)second->offered,
            (unsigned long long)second->done, (double)second->done / second->length_s);
    if (second->done)
        fprintf(out, "%.6g,%.6g,%.6g,%.6g,%.6g", second->mean_ms, second->p50_ms, second->p90_ms,
                second->p99_ms, second->max_ms);
    else
        fputs(",,,,", out);
    fprintf(out, ",%llu,%llu,%llu,%llu,%llu,%llu\r\n", (unsigned long long)second->refused,
            (unsigned long long)second->errors, (unsigned long long)second->in_flight,
            (unsigned long long)second->waiting, (unsigned long long)second->bytes_in,
            (unsigned long long)second->bytes_out);
}
