/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page and the JSON views of rows made by hand: both read the one table of meters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#include "proxy/control/api/json_view.h"
#include "proxy/control/api/page.h"

static struct flow_view rows[2];

static struct snapshot flows_snapshot(void)
{
    memset(rows, 0, sizeof(rows));
    rows[0] = (struct flow_view){.pool = "farm", .name = "gold", .weight = 3, .share = 0.75};
    rows[0].queued = 5;
    rows[0].meters.requests = UINT64_C(18446744073709551615);
    histogram_add(&rows[0].meters.wait, 1000);                   /* below the first bound */
    histogram_add(&rows[0].meters.wait, 40000);                  /* from 2^15 to 2^16 ns */
    histogram_add(&rows[0].meters.wait, UINT64_C(100000000000)); /* above the last */
    rows[1] = (struct flow_view){.pool = "a\\b\"c\nd", .name = "x", .weight = 1};
    return (struct snapshot){&meter_scope_flow, (char *)rows, 2, 2};
}

/* The page; the caller frees it. */
static char *write_page(void)
{
    struct snapshot snapshot = flows_snapshot();
    struct evbuffer *out = evbuffer_new();

    assert_non_null(out);
    page_write_scope(out, &snapshot);
    size_t length = evbuffer_get_length(out);
    char *text = calloc(1, length + 1);
    assert_non_null(text);
    evbuffer_remove(out, text, length);
    evbuffer_free(out);
    return text;
}

static void assert_has(const char *page, const char *piece)
{
    if (strstr(page, piece) == NULL)
        fail_msg("'%s' is not in\n%s", piece, page);
}

static void families_are_counters_gauges_and_histograms(void **state)
{
    char *page = write_page();

    (void)state;
    assert_has(page, "# TYPE spillway_flow_requests_total counter\n"
                     "spillway_flow_requests_total{pool=\"farm\",flow=\"gold\"} "
                     "18446744073709551615\n");
    assert_has(page, "# TYPE spillway_flow_weight gauge\n"
                     "spillway_flow_weight{pool=\"farm\",flow=\"gold\"} 3\n");
    assert_has(page, "spillway_flow_share{pool=\"farm\",flow=\"gold\"} 0.75\n");
    assert_has(page, "spillway_flow_queue_length{pool=\"farm\",flow=\"gold\"} 5\n");
    assert_has(page, "# TYPE spillway_flow_wait_seconds histogram\n");
    free(page);
}

static void label_values_are_escaped(void **state)
{
    char *page = write_page();

    (void)state;
    assert_has(page, "spillway_flow_weight{pool=\"a\\\\b\\\"c\\nd\",flow=\"x\"} 1\n");
    free(page);
}

static void buckets_are_cumulative_and_bounded_by_octaves(void **state)
{
    char *page = write_page();

    (void)state;
    assert_has(page, "spillway_flow_wait_seconds_bucket{pool=\"farm\",flow=\"gold\","
                     "le=\"3.2768e-05\"} 1\n");
    assert_has(page, "spillway_flow_wait_seconds_bucket{pool=\"farm\",flow=\"gold\","
                     "le=\"6.5536e-05\"} 2\n");
    assert_has(page, "spillway_flow_wait_seconds_bucket{pool=\"farm\",flow=\"gold\","
                     "le=\"34.3597384\"} 2\n"
                     "spillway_flow_wait_seconds_bucket{pool=\"farm\",flow=\"gold\","
                     "le=\"+Inf\"} 3\n"
                     "spillway_flow_wait_seconds_sum{pool=\"farm\",flow=\"gold\"} "
                     "100.000041000\n"
                     "spillway_flow_wait_seconds_count{pool=\"farm\",flow=\"gold\"} 3\n");
    free(page);
}

static void every_family_is_described_once_before_its_samples(void **state)
{
    char *page = write_page();
    char family[128] = "";
    char head[160];
    int families = 0;
    char *rest = page;

    (void)state;
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
        if (sscanf(line, "# HELP %127s", family) == 1) {
            families++;
            snprintf(head, sizeof(head), "# HELP %s ", family);
            assert_null(strstr(rest, head));
        } else if (line[0] != '#') {
            assert_memory_equal(line, family, strlen(family));
        }
    }
    assert_int_equal(families, meter_scope_flow.meter_count);
    free(page);
}

/* Names are what dashboards are built on. */
static void names_are_well_formed_and_unique(void **state)
{
    static const struct meter_scope *const scopes[] = {&meter_scope_listener, &meter_scope_pool,
                                                       &meter_scope_flow, &meter_scope_server};

    (void)state;
    for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); s++) {
        for (size_t i = 0; i < scopes[s]->meter_count; i++) {
            const struct meter *meter = &scopes[s]->meters[i];
            assert_int_equal(strspn(meter->name, "abcdefghijklmnopqrstuvwxyz_"),
                             strlen(meter->name));
            assert_true(meter->help[strlen(meter->help) - 1] == '.');
            assert_true(meter->offset + sizeof(uint32_t) <= scopes[s]->row_bytes);
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(meter->name, scopes[s]->meters[j].name);
        }
    }
}

static void json_rows_have_the_same_names(void **state)
{
    struct snapshot snapshot = flows_snapshot();
    json_t *array = json_view_scope(&snapshot);
    json_t *row = json_array_get(array, 0);
    json_t *wait = json_object_get(row, "wait");

    (void)state;
    assert_int_equal(json_array_size(array), 2);
    assert_int_equal(json_object_size(row),
                     meter_scope_flow.meter_count + meter_scope_flow.text_count);
    assert_string_equal(json_string_value(json_object_get(row, "pool")), "farm");
    assert_int_equal(json_integer_value(json_object_get(row, "weight")), 3);
    assert_int_equal(json_integer_value(json_object_get(wait, "count")), 3);
    assert_true(json_real_value(json_object_get(wait, "p99_seconds")) > 60);
    assert_true(json_real_value(json_object_get(wait, "p50_seconds")) < 1e-4);
    json_decref(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_counters_gauges_and_histograms),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(buckets_are_cumulative_and_bounded_by_octaves),
        cmocka_unit_test(every_family_is_described_once_before_its_samples),
        cmocka_unit_test(names_are_well_formed_and_unique),
        cmocka_unit_test(json_rows_have_the_same_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
