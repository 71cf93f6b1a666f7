/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration: lines through measurements, the unit, and that what is printed is a configuration.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/config/config.h"
#include "proxy/control/ctl/calibrate.h"

static void add(struct calibrate_table *table, const char *operation, uint64_t size, double bytes,
                double busy_us)
{
    struct calibrate_row *row = calibrate_table_row(table, operation, size);

    row->bytes = bytes;
    row->alone_us = busy_us * 2;
    row->busy_us = busy_us;
    row->samples = 100;
}

static void expect_near(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-6 * (1 + fabs(wanted)))
        fail_msg("%.9f, not %.9f", value, wanted);
}

static void a_line_is_found_again(void **state)
{
    static struct calibrate_table table;

    (void)state;
    table = (struct calibrate_table){.protocol = "nfs"};
    for (unsigned i = 0; i < 5; i++)
        add(&table, "read", 4096U << (2 * i), (double)(4096U << (2 * i)),
            44 + 28.0 * (double)(4096U << (2 * i)) / 65536);
    struct calibrate_fit fit = calibrate_table_fit(&table, "read");
    assert_int_equal(fit.rows, 5);
    expect_near(fit.base_us, 44);
    expect_near(fit.per_size_us, 28);
    expect_near(fit.error_max, 0);
    assert_int_equal(calibrate_table_fit(&table, "write").rows, 0);
}

static void one_at_a_time_counts_where_it_serves_more(void **state)
{
    static struct calibrate_table table;

    (void)state;
    table = (struct calibrate_table){.protocol = "http"};
    add(&table, "GET", 0, 300, 500);
    calibrate_table_row(&table, "GET", 0)->alone_us = 200;
    expect_near(calibrate_table_fit(&table, "GET").base_us, 200);
    /* Never measured alone, as when it was interrupted: what there is. */
    calibrate_table_row(&table, "GET", 0)->alone_us = 0;
    expect_near(calibrate_table_fit(&table, "GET").base_us, 500);
}

static void small_sizes_count_as_much_as_large_ones(void **state)
{
    static struct calibrate_table table;

    (void)state;
    table = (struct calibrate_table){.protocol = "nfs"};
    add(&table, "read", 1, 0, 50);
    add(&table, "read", 2, 65536, 100);
    /* Twice what the first two say. */
    add(&table, "read", 3, 65536 * 19.0, 2000);
    struct calibrate_fit fit = calibrate_table_fit(&table, "read");
    /* Without the weights the base would be 16 below 0. */
    assert_true(fit.base_us > 35 && fit.base_us < 50);
    assert_true(fit.error_max < 0.5);
    assert_true(fit.error_mean > 0.05 && fit.error_mean < fit.error_max);
}

static void nothing_is_below_zero(void **state)
{
    static struct calibrate_table table;

    (void)state;
    table = (struct calibrate_table){.protocol = "http"};
    /* Cheaper when larger: a mean, and nothing for size. */
    add(&table, "GET", 1, 1000, 60);
    add(&table, "GET", 2, 100000, 40);
    struct calibrate_fit fit = calibrate_table_fit(&table, "GET");
    assert_true(fit.base_us > 40 && fit.base_us < 60);
    expect_near(fit.per_size_us, 0);
    /* Steeper than through the origin: nothing for the request itself. */
    add(&table, "PUT", 1, 65536, 1);
    add(&table, "PUT", 2, 655360, 100);
    fit = calibrate_table_fit(&table, "PUT");
    expect_near(fit.base_us, 0);
    assert_true(fit.per_size_us > 1 && fit.per_size_us < 10);
    /* One size tells nothing about sizes. */
    add(&table, "POST", 1, 65536, 30);
    fit = calibrate_table_fit(&table, "POST");
    expect_near(fit.base_us, 30);
    expect_near(fit.per_size_us, 0);
}

static uint64_t unit_of(double least_us, double most_us)
{
    static struct calibrate_table table;

    table = (struct calibrate_table){.protocol = "nfs"};
    add(&table, "null", 0, 100, least_us);
    add(&table, "write", 0, 100, most_us);
    return calibrate_table_unit_ns(&table);
}

static void the_unit_leaves_the_cheapest_ten(void **state)
{
    (void)state;
    assert_int_equal(unit_of(30, 4000), 1000);
    assert_int_equal(unit_of(10, 4000), 1000);
    assert_int_equal(unit_of(9.9, 4000), 100);
    assert_int_equal(unit_of(5000, 5000), 100000);
    assert_int_equal(unit_of(0.2, 4000), 10);
    /* And the dearest must fit. */
    assert_int_equal(unit_of(0.2, 40000), 100);
    assert_int_equal(unit_of(30, 3e6), 10000);
}

static void the_fastest_run_counts(void **state)
{
    struct calibrate_row row = {.operation = "read"};
    const struct calibrate_row runs[] = {
        {.bytes = 5, .alone_us = 70, .samples = 3},
        {.bytes = 5, .busy_us = 50, .samples = 3},
        {.bytes = 5, .alone_us = 60, .samples = 3},
        {.bytes = 5, .busy_us = 55, .samples = 3},
    };

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        calibrate_row_merge(&row, &runs[i]);
    expect_near(row.alone_us, 60);
    expect_near(row.busy_us, 50);
    assert_int_equal(row.samples, 12);
}

/* A pool's configuration with what was printed in it. */
static struct config *load_printed(const struct calibrate_table *table)
{
    char *printed = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&printed, &length);
    struct config_errors errors;
    struct config *config = NULL;
    FILE *whole;

    calibrate_table_print(table, out);
    fclose(out);
    whole = open_memstream(&text, &length);
    fprintf(whole,
            "listeners: [{ name: l, bind: '127.0.0.1:0', protocol: %s, pool: p }]\n"
            "pools:\n- name: p\n  servers: ['127.0.0.1:1']\n",
            table->protocol);
    for (char *line = strtok(printed, "\n"); line != NULL; line = strtok(NULL, "\n"))
        fprintf(whole, "  %s\n", line);
    fclose(whole);
    config_errors_init(&errors);
    config_load_text("f", text, length, CONFIG_NO_LOOKUP, &config, &errors);
    config_errors_print(&errors, stderr);
    assert_int_equal(errors.count, 0);
    config_errors_fini(&errors);
    free(printed);
    free(text);
    assert_non_null(config);
    return config;
}

static void what_is_printed_is_a_configuration(void **state)
{
    static struct calibrate_table table;

    (void)state;
    table = (struct calibrate_table){.protocol = "nfs", .target = "h:1/e", .depth = 8};
    add(&table, "getattr", 0, 220, 30.4);
    add(&table, "lookup", 0, 350, 33);
    add(&table, "access", 0, 230, 39);
    add(&table, "create", 0, 420, 91);
    add(&table, "commit", 0, 250, 55);
    add(&table, "write", 4096, 4096, 60);
    add(&table, "write", 65536 + 4096, 65536 + 4096, 90);
    add(&table, "read", 4096, 4096, 45);
    add(&table, "read", 65536 + 4096, 65536 + 4096, 73);
    calibrate_table_note(&table, "link is left out: the server answers %d", 7);
    calibrate_table_note(&table, "link is left out: the server answers %d", 7);
    assert_int_equal(table.note_count, 1);
    struct config *config = load_printed(&table);
    const struct config_cost *cost = &config->pools[0].cost;
    assert_int_equal(cost->by, CONFIG_COST_TABLE);
    assert_int_equal(cost->unit_bytes, 65536);
    assert_int_equal(cost->nfs3_rate[1].base, 30);
    assert_int_equal(cost->nfs3_rate[6].base, 43);
    assert_int_equal(cost->nfs3_rate[6].per_size, 28);
    assert_int_equal(cost->nfs3_rate[7].per_size, 30); /* WRITE */
    assert_int_equal(cost->nfs3_rate[21].base, 55);    /* COMMIT, of the same class */
    assert_int_equal(cost->nfs3_rate[21].per_size, 0);
    assert_int_equal(cost->nfs3_rate[8].base, 91);  /* CREATE */
    assert_int_equal(cost->nfs3_rate[11].base, 91); /* MKNOD is like it */
    assert_int_equal(cost->nfs3_rate[12].base, 33); /* REMOVE: metadata, the median */
    assert_int_equal(cost->class_rate[CONFIG_CLASS_METADATA].base, 33);
    assert_int_equal(cost->class_rate[CONFIG_CLASS_READ].per_size, 28);
    config_free(config);
    calibrate_table_fini(&table);

    table = (struct calibrate_table){.protocol = "http", .target = "h:1", .depth = 8};
    add(&table, "GET", 0, 300, 4.25);
    add(&table, "HEAD", 0, 300, 0.001);
    /* Nothing but its size costs: still 1, which is the least that a table may say. */
    add(&table, "PATCH", 1, 65536, 1);
    add(&table, "PATCH", 2, 655360, 100);
    config = load_printed(&table);
    cost = &config->pools[0].cost;
    assert_int_equal(config_cost_of_method(cost, "GET", 3).base, 4250);
    assert_int_equal(config_cost_of_method(cost, "HEAD", 4).base, 1);
    assert_int_equal(config_cost_of_method(cost, "POST", 4).base, 4250);
    assert_int_equal(config_cost_of_method(cost, "PATCH", 5).base, 1);
    assert_int_equal(config_cost_of_method(cost, "HEAD", 4).per_size, 0);
    assert_int_equal(cost->unit_bytes, 65536);
    config_free(config);
    json_t *object = calibrate_table_json(&table);
    assert_int_equal(json_integer_value(json_object_get(
                         json_object_get(json_object_get(object, "cost"), "table"), "GET")),
                     4250);
    json_decref(object);
    calibrate_table_fini(&table);
}

static void hosts_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *host, *port;
    } rows[] = {
        {"host", "host", "2049"},
        {"host:", "host", "2049"},
        {"host:12", "host", "12"},
        {"[::1]:12", "::1", "12"},
        {"[::1]", "::1", "2049"},
        {"[::1]:", "::1", "2049"},
        {"10.0.0.1:7", "10.0.0.1", "7"},
        {"::1", NULL, NULL},
        {"", NULL, NULL},
        {":12", NULL, NULL},
        {"[::1", NULL, NULL},
        {"[::1]x", NULL, NULL},
        {"host:12x", NULL, NULL},
        {"host:-1", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[32];
        char *host;
        char *port = (char *)"2049";

        snprintf(text, sizeof(text), "%s", rows[i].text);
        bool right = calibrate_split_host(text, &host, &port);
        if (right != (rows[i].host != NULL))
            fail_msg("%s", rows[i].text);
        if (right) {
            assert_string_equal(host, rows[i].host);
            assert_string_equal(port, rows[i].port);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_again),
        cmocka_unit_test(one_at_a_time_counts_where_it_serves_more),
        cmocka_unit_test(small_sizes_count_as_much_as_large_ones),
        cmocka_unit_test(nothing_is_below_zero),
        cmocka_unit_test(the_unit_leaves_the_cheapest_ten),
        cmocka_unit_test(the_fastest_run_counts),
        cmocka_unit_test(what_is_printed_is_a_configuration),
        cmocka_unit_test(hosts_are_taken_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
