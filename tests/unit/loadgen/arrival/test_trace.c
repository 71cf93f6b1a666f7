/* SPDX-License-Identifier: Apache-2.0 */
/* Traces read from text and from files, what is said of wrong ones, and traces that are made. */
#include "loadgen/arrival/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loadgen/arrival/trace_shapes.h"
#include "tests/unit/loadgen/statistics.h"

#define NS_PER_S 1000000000ULL
#define ENTRIES  8

static const struct {
    const char *text;
    size_t count;
    uint64_t interval_ns; /* 0: times */
    double entries[ENTRIES];
    uint64_t length_ns;
} good[] = {
    {"1\n2.5\n4\n", 3, 0, {1e9, 2.5e9, 4e9}, 4500000000},
    {"0\n\n# a remark\n10\n", 2, 0, {0, 10e9}, 20 * NS_PER_S},
    {"# spillload-trace: times ms\n0.5\n0.5\n3", 3, 0, {500000, 500000, 3e6}, 3750000},
    {"#spillload-trace: times\n7", 1, 0, {7e9}, 7000000001},
    {"# spillload-trace: times ns\n12\n15.9\n", 2, 0, {12, 15}, 16},
    {"# spillload-trace:  times  us \r\n1e3\r\n2.5e3\r\n", 2, 0, {1e6, 2.5e6}, 3000000},
    {"1.5e-05\n", 1, 0, {15000}, 15001},
    {"1.\n.5e1\n", 2, 0, {1e9, 5e9}, 8 * NS_PER_S},
    {"time,path\n1,/a\n2,/b\n", 2, 0, {1e9, 2e9}, 2 * NS_PER_S + 1},
    {"\"when\";\"what\"\n1;/a\n2;/b\n", 2, 0, {1e9, 2e9}, 2 * NS_PER_S + 1},
    {"  3 x\n\t4\tx\n", 2, 0, {3e9, 4e9}, 4 * NS_PER_S + 1},
    {"# spillload-trace: rates 1s\n15\n0\n0.25\n", 3, NS_PER_S, {15, 0, 0.25}, 3 * NS_PER_S},
    {"# about\n# spillload-trace: rates 250ms\nrate\n1e2\n", 1, 250000000, {100}, 250000000},
};

static void traces_are_read(void **state)
{
    char error[TRACE_ERROR_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct trace trace;
        double total = 0;

        if (trace_parse(good[i].text, strlen(good[i].text), &trace, error) != 0)
            fail_msg("%s: %s", good[i].text, error);
        assert_int_equal(trace.count, good[i].count);
        assert_int_equal(trace.times, good[i].interval_ns == 0);
        assert_int_equal(trace.interval_ns, good[i].interval_ns);
        assert_int_equal(trace.length_ns, good[i].length_ns);
        for (size_t k = 0; k < trace.count; k++) {
            assert_true((trace.times ? (double)trace.times_ns[k] : trace.rates_per_s[k]) ==
                        good[i].entries[k]);
            total += trace.times ? 1 : trace.rates_per_s[k] * (double)trace.interval_ns / 1e9;
        }
        assert_near(trace.total, total, 1e-12);
        trace_fini(&trace);
        assert_int_equal(trace.count, 0);
    }
}

static const struct {
    const char *text;
    const char *error; /* how the sentence begins */
} bad[] = {
    {"", "no request in it: it has no line with a number"},
    {"# spillload-trace: rates 1s\n0\n0.0\n", "no request in it: every rate is 0"},
    {"words\nmore words\n", "line 2: 'more': expected the time"},
    {"1\n2\n1.5\n", "line 3: '1.5': expected a time not before"},
    {"1\n\n# x\n-2\n", "line 4: '-2': expected the time"},
    {"1\n2 3\n4x\n", "line 3: '4x': expected the time"},
    {"1..5\n", "line 1: '1..5': expected"},
    {".\n", "line 1: '.': expected"},
    {"+1\n", "line 1: '+1': expected"},
    {"0x10\n", "line 1: '0x10': expected"},
    {"1e\n", "line 1: '1e': expected"},
    {"1e400\n", "line 1: '1e400': expected"},
    {"99999999999999999999\n", "line 1: '99999999999999999999': expected"},
    {"4611686019\n", "line 1: '4611686019': expected"},
    {"1\n\x01\x7f\n", "line 2: '?\?': expected"},
    {"# spillload-trace: rates 1s\n1\nnan\n", "line 3: 'nan': expected a rate"},
    {"# spillload-trace: rates 1s\n1\n-1\n", "line 3: '-1': expected a rate"},
    {"# spillload-trace: rates 1s\n2e9\n", "line 2: '2e9': expected a rate"},
    {"# spillload-trace: rates 1s\n,5\n", "line 2: '': expected a rate"},
    {"# spillload-trace: rates\n1\n", "line 1: ' rates': expected 'rates INTERVAL'"},
    {"# spillload-trace: rates 0\n1\n", "line 1: ' rates 0': expected 'rates INTERVAL'"},
    {"# spillload-trace: rates 1s 2s\n1\n", "line 1: ' rates 1s 2s': expected"},
    {"# spillload-trace: times min\n1\n", "line 1: ' times min': expected"},
    {"# spillload-trace: sizes\n1\n", "line 1: ' sizes': expected"},
    {"# spillload-trace:\n1\n", "line 1: '': expected"},
    {"1\n# spillload-trace: times\n2\n", "line 2: ' times': expected this line once"},
    {"# spillload-trace: times\n# spillload-trace: times\n2\n", "line 2: ' times': expected this"},
    {"# spillload-trace: rates 2400000h\n1\n1\n", "2 intervals are longer than 146 years"},
    {"1234567890123456789012345678901234567890abcdef\n",
     "line 1: '1234567890123456789012345678901234567890...': expected"},
};

static void what_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char error[TRACE_ERROR_BYTES] = "";
        struct trace trace;

        assert_int_equal(trace_parse(bad[i].text, strlen(bad[i].text), &trace, error), -EINVAL);
        if (strncmp(error, bad[i].error, strlen(bad[i].error)) != 0)
            fail_msg("%s: says '%s', not '%s'", bad[i].text, error, bad[i].error);
        assert_int_equal(trace.count, 0);
        assert_null(trace.times_ns);
        assert_null(trace.rates_per_s);
    }
}

static void a_nul_is_a_mistake_like_another(void **state)
{
    char error[TRACE_ERROR_BYTES];
    struct trace trace;

    (void)state;
    assert_int_equal(trace_parse("1\n2\0003\n", 6, &trace, error), -EINVAL);
    assert_true(strncmp(error, "line 2: '2?3'", 13) == 0);
    assert_int_equal(trace_parse("#spillload-trace: times\0s\n1", 27, &trace, error), -EINVAL);
}

static void seconds_since_1970_keep_their_nanoseconds(void **state)
{
    static const char text[] = "1700000000.123456789\n1700000000.123456790999\n";
    char error[TRACE_ERROR_BYTES];
    struct trace trace;

    (void)state;
    assert_int_equal(trace_parse(text, strlen(text), &trace, error), 0);
    assert_int_equal(trace.times_ns[0], 1700000000123456789);
    assert_int_equal(trace.times_ns[1], 1700000000123456790);
    trace_fini(&trace);
}

static void files_are_named_in_what_is_said(void **state)
{
    char error[TRACE_ERROR_BYTES];
    char path[] = "/tmp/spillload-trace-XXXXXX";
    struct trace trace;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    /* Larger than one read, so that it is put together from several. */
    FILE *file = fdopen(fd, "w");

    assert_non_null(file);
    for (int i = 0; i < 300000; i++)
        assert_true(fprintf(file, "%d.%03d\n", i / 1000, i % 1000) > 0);
    fflush(file);
    assert_int_equal(trace_read(path, &trace, error), 0);
    assert_int_equal(trace.count, 300000);
    assert_int_equal(trace.times_ns[299999], 299999000000);
    trace_fini(&trace);
    fprintf(file, "mistake\n");
    fclose(file);
    assert_int_equal(trace_read(path, &trace, error), -EINVAL);
    assert_true(strncmp(error, path, strlen(path)) == 0);
    assert_non_null(strstr(error, "line 300001: 'mistake'"));
    unlink(path);
    assert_int_equal(trace_read(path, &trace, error), -ENOENT);
    assert_non_null(strstr(error, "No such file"));
    assert_int_equal(trace_read("/tmp", &trace, error), -EISDIR);
}

/* ---------------------------------------------------------------- made ones */

static double share_above(const struct trace *trace, double level)
{
    size_t count = 0;

    for (size_t i = 0; i < trace->count; i++)
        count += trace->rates_per_s[i] > level;
    return (double)count / (double)trace->count;
}

static double mean_between(const struct trace *trace, double from, double to)
{
    size_t first = (size_t)(from * (double)trace->count);
    size_t end = (size_t)(to * (double)trace->count);
    double sum = 0;

    for (size_t i = first; i < end; i++)
        sum += trace->rates_per_s[i];
    return sum / (double)(end - first);
}

/* How often the rates cross the middle between both levels, the one before being the other side. */
static size_t swings(const struct trace *trace, double low, double high)
{
    size_t count = 0;
    bool up = trace->rates_per_s[0] > low;

    for (size_t i = 0; i < trace->count; i++) {
        if (up ? trace->rates_per_s[i] < low : trace->rates_per_s[i] > high) {
            up = !up;
            count++;
        }
    }
    return count;
}

static struct trace made(const char *name, uint64_t seed)
{
    const struct trace_shape *shape = trace_shape_find(name);
    struct trace trace;

    assert_non_null(shape);
    trace_make(shape, seed, shape->length_ns, 100, &trace);
    return trace;
}

static void every_seed_makes_the_shape_of_the_name(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct trace spike = made("big-spike", seed);
        struct trace dual = made("dual-phase", seed);
        struct trace large = made("large-variation", seed);
        struct trace quick = made("quick-varying", seed);
        struct trace slow = made("slow-varying", seed);
        struct trace three = made("steep-tri-phase", seed);
        struct trace day = made("production-day", seed);

        assert_true(share_above(&spike, 50) > 0.04 && share_above(&spike, 50) < 0.2);
        assert_true(mean_between(&spike, 0, 0.35) < 35 && mean_between(&spike, 0.75, 1) < 35);
        assert_true(mean_between(&dual, 0, 0.4) * 1.8 < mean_between(&dual, 0.6, 1));
        assert_true(swings(&large, 40, 45) >= 6 && swings(&large, 40, 45) <= 20);
        assert_true(swings(&quick, 45, 55) > swings(&large, 45, 55) + 10);
        assert_true(swings(&slow, 55, 75) <= 2);
        assert_true(mean_between(&three, 0, 0.25) < mean_between(&three, 0.7, 1) - 8);
        assert_true(mean_between(&three, 0.36, 0.58) > mean_between(&three, 0.7, 1) + 20);
        assert_true(mean_between(&day, 17.0 / 24, 17.5 / 24) > 90);
        assert_true(mean_between(&day, 0, 16.5 / 24) < 65);
        assert_near(mean_between(&day, 0, 5.0 / 24), 41, 5);
        trace_fini(&spike);
        trace_fini(&dual);
        trace_fini(&large);
        trace_fini(&quick);
        trace_fini(&slow);
        trace_fini(&three);
        trace_fini(&day);
    }
}

static void a_made_trace_has_its_peak_length_and_seed(void **state)
{
    (void)state;
    for (size_t i = 0; trace_shape_at(i); i++) {
        const struct trace_shape *shape = trace_shape_at(i);
        struct trace one;
        struct trace same;
        struct trace other;
        double highest = 0;
        double total = 0;
        size_t equal = 0;

        assert_ptr_equal(trace_shape_find(shape->name), shape);
        trace_make(shape, 7, 300 * shape->interval_ns, 250, &one);
        trace_make(shape, 7, 300 * shape->interval_ns, 250, &same);
        trace_make(shape, 8, 300 * shape->interval_ns, 250, &other);
        assert_int_equal(one.count, 300);
        assert_int_equal(one.length_ns, 300 * shape->interval_ns);
        for (size_t k = 0; k < one.count; k++) {
            assert_true(one.rates_per_s[k] == same.rates_per_s[k]);
            assert_true(one.rates_per_s[k] >= 0);
            equal += one.rates_per_s[k] == other.rates_per_s[k];
            highest = fmax(highest, one.rates_per_s[k]);
            total += one.rates_per_s[k] * (double)shape->interval_ns / 1e9;
        }
        assert_near(highest, 250, 1e-9);
        assert_near(one.total, total, 1e-6 * total);
        assert_true(equal < 30);
        trace_fini(&one);
        trace_fini(&same);
        trace_fini(&other);
    }
    assert_null(trace_shape_find("no-such-shape"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_are_read),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(a_nul_is_a_mistake_like_another),
        cmocka_unit_test(seconds_since_1970_keep_their_nanoseconds),
        cmocka_unit_test(files_are_named_in_what_is_said),
        cmocka_unit_test(every_seed_makes_the_shape_of_the_name),
        cmocka_unit_test(a_made_trace_has_its_peak_length_and_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
