/* SPDX-License-Identifier: Apache-2.0 */
/* Live lines and the live table. */
#include "loadgen/results/live.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loadgen/base/memory.h"
#include "loadgen/results/series.h"
#include "loadgen/results/summary/json_text.h"
#include "loadgen/results/table.h"

#define LINE_BYTES    512
#define BAR_MAX       60U
#define BAR_TEXT      34U /* what stands beside the bar */
#define NARROW        20U
#define LINES_DEFAULT 24U
/* Above and below the flows: the bar, the heads, the total, a line for the cursor. */
#define LINES_AROUND 4U

static bool wants_table(FILE *out)
{
    const char *terminal = getenv("TERM");

    return isatty(fileno(out)) && terminal && strcmp(terminal, "dumb") != 0;
}

void live_init(struct live *live, FILE *out, const struct results_options *options)
{
    *live = (struct live){.out = out,
                          .mode = options->live,
                          .warmup_ns = options->warmup_ns,
                          .duration_ns = options->duration_ns};
    if (live->mode == RESULTS_LIVE_AUTO || live->mode == RESULTS_LIVE_TABLE)
        live->mode = wants_table(out) ? RESULTS_LIVE_TABLE : RESULTS_LIVE_OFF;
    live->all = memory_zeroed(1, sizeof(*live->all));
}

void live_fini(struct live *live)
{
    free(live->all);
    live->all = NULL;
}

/* ---------------------------------------------------------------- lines */

static void text_line(FILE *out, unsigned number, const struct live_row *row)
{
    const struct summary_second *second = &row->second;
    char p50[TABLE_TIME_BYTES];
    char p99[TABLE_TIME_BYTES];

    fprintf(out,
            "%4us  %-16s %9.1f/s  p50 %8s  p99 %8s  in flight %5llu  waiting %6llu  refused %llu"
            "  errors %llu\n",
            number, row->flow->spec.name, (double)second->done / second->length_s,
            table_time(second->p50_ms, second->done, p50),
            table_time(second->p99_ms, second->done, p99), (unsigned long long)second->in_flight,
            (unsigned long long)second->waiting, (unsigned long long)second->refused,
            (unsigned long long)second->errors);
}

static json_t *json_row(const struct live_row *row)
{
    const struct summary_second *second = &row->second;

    return json_pack(
        "{s:o, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "name", json_text(row->flow->spec.name), "rate",
        (double)second->done / second->length_s, "p50_ms", second->p50_ms, "p99_ms", second->p99_ms,
        "in_flight", (json_int_t)second->in_flight, "waiting", (json_int_t)second->waiting,
        "refused", (json_int_t)second->refused, "errors", (json_int_t)second->errors);
}

static void json_line(FILE *out, unsigned number, const struct live_row *rows, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_row(&rows[i]));
    json_t *line = json_pack("{s:i, s:o}", "second", (int)number, "flows", list);

    json_dumpf(line, out, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(line);
}

/* ---------------------------------------------------------------- the table */

/* One line, cut to the screen; what was right of it goes. */
static void put_line(struct live *live, const char *text, size_t columns)
{
    fprintf(live->out, "%.*s\033[K\n", (int)(columns > 1 ? columns - 1 : 1), text);
}

static void draw_bar(struct live *live, double elapsed_s, size_t columns)
{
    double warmup_s = (double)live->warmup_ns / 1e9;
    double all_s = warmup_s + (double)live->duration_ns / 1e9;
    double share = all_s > 0 ? elapsed_s / all_s : 1;
    size_t width = columns > BAR_TEXT + NARROW ? columns - BAR_TEXT : NARROW;
    char bar[BAR_MAX + 1];
    char line[LINE_BYTES];

    if (width > BAR_MAX)
        width = BAR_MAX;
    size_t full = share >= 1 ? width : (size_t)(share * (double)width);

    memset(bar, '-', width);
    memset(bar, '#', full);
    bar[width] = '\0';
    snprintf(line, sizeof(line), "[%s] %.0f s of %.0f s%s", bar, elapsed_s, all_s,
             elapsed_s <= warmup_s ? ", warming up" : "");
    put_line(live, line, columns);
}

static void draw_row(struct live *live, const char *name, const struct summary_second *second,
                     size_t columns)
{
    char p50[TABLE_TIME_BYTES];
    char p99[TABLE_TIME_BYTES];
    char line[LINE_BYTES];

    snprintf(line, sizeof(line), "%-16.31s %9.1f %8s %8s %8llu %8llu %9llu %8llu", name,
             (double)second->done / second->length_s, table_time(second->p50_ms, second->done, p50),
             table_time(second->p99_ms, second->done, p99), (unsigned long long)second->errors,
             (unsigned long long)second->refused, (unsigned long long)second->in_flight,
             (unsigned long long)second->waiting);
    put_line(live, line, columns);
}

/* The sums, and the percentiles of all replies together. */
static void draw_total(struct live *live, const struct live_row *rows, size_t count, size_t columns)
{
    struct summary_second total = {.length_s = rows[0].second.length_s};

    histogram_reset(live->all);
    for (size_t i = 0; i < count; i++) {
        const struct summary_second *second = &rows[i].second;

        total.done += second->done;
        total.refused += second->refused;
        total.errors += second->errors;
        total.in_flight += second->in_flight;
        total.waiting += second->waiting;
        histogram_merge(live->all, &rows[i].flow->second.latency);
    }
    series_latency(&total, live->all);
    draw_row(live, "total", &total, columns);
}

size_t live_draw(struct live *live, double elapsed_s, const struct live_row *rows, size_t count,
                 size_t columns, size_t lines)
{
    size_t room = lines > LINES_AROUND + 1 ? lines - LINES_AROUND : 1;
    size_t shown = count > room ? room - 1 : count;
    char line[LINE_BYTES];

    draw_bar(live, elapsed_s, columns);
    snprintf(line, sizeof(line), "%-16s %9s %8s %8s %8s %8s %9s %8s", "flow", "rate/s", "p50",
             "p99", "errors", "refused", "in flight", "waiting");
    put_line(live, line, columns);
    for (size_t i = 0; i < shown; i++)
        draw_row(live, rows[i].flow->spec.name, &rows[i].second, columns);
    if (shown < count) {
        snprintf(line, sizeof(line), "and %zu more", count - shown);
        put_line(live, line, columns);
    }
    if (count > 1)
        draw_total(live, rows, count, columns);
    return 2 + shown + (shown < count) + (count > 1);
}

static void redraw(struct live *live, double elapsed_s, const struct live_row *rows, size_t count)
{
    struct winsize size = {0};

    if (ioctl(fileno(live->out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = 80, .ws_row = LINES_DEFAULT};
    live_finish(live);
    live->lines_drawn = live_draw(live, elapsed_s, rows, count, size.ws_col, size.ws_row);
}

void live_finish(struct live *live)
{
    /* To the first of its lines, and nothing below. */
    if (live->lines_drawn)
        fprintf(live->out, "\033[%zuF\033[J", live->lines_drawn);
    live->lines_drawn = 0;
}

void live_second(struct live *live, unsigned number, const struct live_row *rows, size_t count)
{
    switch (live->mode) {
    case RESULTS_LIVE_TEXT:
        for (size_t i = 0; i < count; i++)
            text_line(live->out, number, &rows[i]);
        break;
    case RESULTS_LIVE_JSON:
        json_line(live->out, number, rows, count);
        break;
    case RESULTS_LIVE_TABLE:
        redraw(live, rows[0].second.time_s, rows, count);
        break;
    default:
        return;
    }
    fflush(live->out);
}
