/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions: draws against their distribution functions and means, text forms both ways. */
#include "loadgen/base/distribution.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/loadgen/statistics.h"

static uint64_t seed;

static int read_seed(void **state)
{
    (void)state;
    seed = statistics_seed();
    return 0;
}

static struct distribution read_one(const char *text, enum distribution_unit unit)
{
    struct distribution out;

    if (distribution_read(text, unit, &out) != 0)
        fail_msg("'%s' was refused", text);
    return out;
}

/* ---------------------------------------------------------------- draws */

/* Mean and standard deviation, both in units of the mean, of each distribution. */
static void distributions_have_their_mean_and_spread(void **state)
{
    enum { COUNT = 200000 };
    static const struct {
        const char *name;
        double deviation;
        double fourth; /* standard error of the squared deviation, generously */
    } rows[] = {
        {"fixed", 0, 0}, {"exponential", 1, 3}, {"uniform", 0.57735, 1}, {"bimodal", 1.5, 4}};

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct distribution distribution = {.mean = 10000000};
        struct rng rng;
        double sum = 0;
        double squares = 0;

        assert_int_equal(distribution_parse(rows[row].name, &distribution.kind), 0);
        assert_string_equal(distribution_name(distribution.kind), rows[row].name);
        rng_init(&rng, seed, row);
        for (int i = 0; i < COUNT; i++) {
            double value = (double)distribution_draw(&distribution, &rng) / 1e7;

            sum += value;
            squares += value * value;
        }
        double mean = sum / COUNT;
        double variance = squares / COUNT - mean * mean;
        double wanted = rows[row].deviation * rows[row].deviation;

        assert_near(mean, 1, 1e-6 + 5 * rows[row].deviation / sqrt(COUNT));
        assert_near(variance, wanted, 1e-5 + 5 * rows[row].fourth / sqrt(COUNT));
    }
}

static void unknown_distributions_are_refused(void **state)
{
    enum distribution_kind kind = DISTRIBUTION_UNIFORM;

    (void)state;
    assert_true(distribution_parse("normal", &kind) < 0);
    assert_true(distribution_parse("", &kind) < 0);
    assert_int_equal(kind, DISTRIBUTION_UNIFORM);
}

static void bounded_draws_stay_below_their_bound(void **state)
{
    struct rng rng;
    uint64_t counts[10] = {0};

    (void)state;
    rng_init(&rng, seed, 3);
    for (int i = 0; i < 100000; i++)
        counts[rng_below(&rng, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_near((double)counts[i], 10000, 5 * sqrt(9000));
    assert_int_equal(rng_below(&rng, 0), 0);
    assert_int_equal(rng_below(&rng, 1), 0);
}

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* P(X <= x), written down from the definitions in the header. */
static double below(const struct distribution *distribution, double x)
{
    double mean = (double)distribution->mean;
    double alpha = distribution->shape;
    double least = (double)distribution->least;
    double most = (double)distribution->most;

    switch (distribution->kind) {
    case DISTRIBUTION_EXPONENTIAL:
        return 1 - exp(-x / mean);
    case DISTRIBUTION_UNIFORM:
        return x / (2 * mean);
    case DISTRIBUTION_LOGNORMAL:
        return normal_below((log(x) - log(mean) + alpha * alpha / 2) / alpha);
    case DISTRIBUTION_PARETO:
        return (1 - pow(least / x, alpha)) / (1 - pow(least / most, alpha));
    default:
        fail_msg("no distribution function");
        return 0;
    }
}

/* Values large enough that their being whole does not show. */
static void draws_follow_their_distribution_function(void **state)
{
    enum { COUNT = 100000 };
    static const char *const texts[] = {
        "exponential:1000s",         "uniform:1000s",        "lognormal:1000s:0.3",
        "lognormal:1000s:1.5",       "pareto:1.1:1s:10000s", "pareto:1:1s:1000s",
        "pareto:2.5:10s:20000000ms", "pareto:0.01:1s:100s",  "pareto:20:1s:2h"};
    static double values[COUNT];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct distribution distribution = read_one(texts[i], DISTRIBUTION_NS);
        struct rng rng;

        rng_init(&rng, seed, 100 + i);
        for (int k = 0; k < COUNT; k++)
            values[k] = below(&distribution, (double)distribution_draw(&distribution, &rng));
        assert_uniform(values, COUNT);
    }
}

static void bimodal_draws_are_nine_to_one(void **state)
{
    enum { COUNT = 100000 };
    struct distribution distribution = read_one("bimodal:10ms", DISTRIBUTION_NS);
    double counts[2] = {0};
    double expected[2] = {0.9 * COUNT, 0.1 * COUNT};
    struct rng rng;

    (void)state;
    rng_init(&rng, seed, 5);
    for (int i = 0; i < COUNT; i++) {
        uint64_t value = distribution_draw(&distribution, &rng);

        assert_true(value == 5000000 || value == 55000000);
        counts[value == 55000000]++;
    }
    assert_counts(counts, expected, 2, 1);
}

/* By the midpoint rule over x: the mean is least plus the integral of P(X > x). */
static double pareto_mean_by_sum(const struct distribution *distribution)
{
    enum { CUTS = 1000000 };
    double least = (double)distribution->least;
    double ratio = (double)distribution->most / least;
    double sum = least;

    for (int i = 0; i < CUTS; i++) {
        double from = least * pow(ratio, (double)i / CUTS);
        double to = least * pow(ratio, (double)(i + 1) / CUTS);

        sum += (1 - below(distribution, (from + to) / 2)) * (to - from);
    }
    return sum;
}

static void a_bounded_pareto_has_the_mean_it_says(void **state)
{
    enum { COUNT = 400000 };
    static const char *const texts[] = {"pareto:1.1:500:10MiB", "pareto:1:500:1MiB",
                                        "pareto:1.0000001:1KiB:1MiB", "pareto:2.2:4KiB:1GiB",
                                        "pareto:0.3:1:1000"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct distribution distribution = read_one(texts[i], DISTRIBUTION_BYTES);
        double mean = distribution_mean(&distribution);
        double sum = 0;
        double squares = 0;
        struct rng rng;

        assert_near(mean, pareto_mean_by_sum(&distribution), 1e-5 * mean);
        assert_near((double)distribution.mean, mean, 0.5);
        rng_init(&rng, seed, 200 + i);
        for (int k = 0; k < COUNT; k++) {
            uint64_t value = distribution_draw(&distribution, &rng);

            assert_true(value >= distribution.least && value <= distribution.most);
            sum += (double)value;
            squares += (double)value * (double)value;
        }
        double deviation = sqrt(squares / COUNT - sum / COUNT * sum / COUNT);

        assert_near(sum / COUNT, mean, 5 * deviation / sqrt(COUNT));
    }
    struct distribution one = read_one("pareto:1.5:4096:4KiB", DISTRIBUTION_BYTES);
    struct rng rng;

    rng_init(&rng, seed, 1);
    assert_int_equal(one.mean, 4096);
    assert_int_equal(distribution_draw(&one, &rng), 4096);
}

static void a_lognormal_has_the_mean_and_spread_it_says(void **state)
{
    enum { COUNT = 400000 };
    struct distribution distribution = read_one("lognormal:64KiB:0.8", DISTRIBUTION_BYTES);
    double wanted = sqrt(expm1(0.64)); /* deviation over mean */
    double sum = 0;
    double squares = 0;
    struct rng rng;

    (void)state;
    rng_init(&rng, seed, 6);
    for (int k = 0; k < COUNT; k++) {
        double value = (double)distribution_draw(&distribution, &rng) / 65536;

        sum += value;
        squares += value * value;
    }
    assert_near(sum / COUNT, 1, 5 * wanted / sqrt(COUNT));
    assert_near(sqrt(squares / COUNT - sum / COUNT * sum / COUNT), wanted, 0.03 * wanted);
}

static void the_same_number_draws_the_same(void **state)
{
    static const char *const texts[] = {"5ms", "exponential:5ms", "lognormal:5ms:1",
                                        "pareto:1.2:1ms:1s"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct distribution distribution = read_one(texts[i], DISTRIBUTION_NS);
        struct rng a;
        struct rng b;

        rng_init(&a, seed, i);
        rng_init(&b, seed, i);
        for (uint64_t k = 0; k < 100; k++)
            assert_int_equal(distribution_draw_for(&distribution, &a, k),
                             distribution_draw(&distribution, &b));
    }
}

/* ---------------------------------------------------------------- text */

static void texts_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        enum distribution_unit unit;
        enum distribution_kind kind;
        uint64_t mean;
        const char *written;
    } rows[] = {
        {"10ms", DISTRIBUTION_NS, DISTRIBUTION_FIXED, 10000000, "10ms"},
        {"0", DISTRIBUTION_NS, DISTRIBUTION_FIXED, 0, "0"},
        {"fixed:1.5ms", DISTRIBUTION_NS, DISTRIBUTION_FIXED, 1500000, "1500us"},
        {"exponential:2s", DISTRIBUTION_NS, DISTRIBUTION_EXPONENTIAL, 2000000000, "exponential:2s"},
        {"uniform:7ns", DISTRIBUTION_NS, DISTRIBUTION_UNIFORM, 7, "uniform:7ns"},
        {"bimodal:90m", DISTRIBUTION_NS, DISTRIBUTION_BIMODAL, 5400000000000, "bimodal:5400s"},
        {"lognormal:10ms:1.5", DISTRIBUTION_NS, DISTRIBUTION_LOGNORMAL, 10000000,
         "lognormal:10ms:1.5"},
        {"pareto:1.1:500:10MiB", DISTRIBUTION_BYTES, DISTRIBUTION_PARETO, 3467,
         "pareto:1.1:500:10MiB"},
        {"4096", DISTRIBUTION_BYTES, DISTRIBUTION_FIXED, 4096, "4KiB"},
        {"exponential:1GiB", DISTRIBUTION_BYTES, DISTRIBUTION_EXPONENTIAL, 1 << 30,
         "exponential:1GiB"},
        {"lognormal:100:1e-1", DISTRIBUTION_BYTES, DISTRIBUTION_LOGNORMAL, 100,
         "lognormal:100:0.1"},
    };
    char buffer[DISTRIBUTION_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct distribution one = read_one(rows[i].text, rows[i].unit);
        struct distribution again;

        assert_int_equal(one.kind, rows[i].kind);
        assert_int_equal(one.mean, rows[i].mean);
        assert_ptr_equal(distribution_format(&one, rows[i].unit, buffer), buffer);
        assert_string_equal(buffer, rows[i].written);
        again = read_one(buffer, rows[i].unit);
        assert_int_equal(again.kind, one.kind);
        assert_int_equal(again.mean, one.mean);
        assert_int_equal(again.least, one.least);
        assert_int_equal(again.most, one.most);
        assert_true(again.shape == one.shape);
    }
}

static void wrong_texts_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        ":",
                                        "10",
                                        "10ms ",
                                        "-1ms",
                                        "normal:10ms",
                                        "exponential",
                                        "exponential:",
                                        "exponential:10ms:2",
                                        "lognormal:10ms",
                                        "lognormal:10ms:0",
                                        "lognormal:10ms:11",
                                        "lognormal:10ms:x",
                                        "lognormal:10ms:nan",
                                        "lognormal:0:1",
                                        "lognormal:10ms:1:1",
                                        "pareto:1.1:1ms",
                                        "pareto:1.1:2ms:1ms",
                                        "pareto:1.1:0:1ms",
                                        "pareto:0:1ms:2ms",
                                        "pareto:-1:1ms:2ms",
                                        "pareto:1.1:1ms:2ms:3ms",
                                        "pareto:1.1:1:2",
                                        "list:/nonexistent/file",
                                        "list:"};
    char longer[DISTRIBUTION_TEXT_BYTES + 1];
    struct distribution out = {.kind = DISTRIBUTION_UNIFORM, .mean = 3};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (distribution_read(texts[i], DISTRIBUTION_NS, &out) == 0)
            fail_msg("'%s' was taken", texts[i]);
    }
    memset(longer, '1', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(distribution_read(longer, DISTRIBUTION_BYTES, &out), -EINVAL);
    assert_int_equal(distribution_read("list:/nonexistent/file", DISTRIBUTION_BYTES, &out),
                     -ENOENT);
    assert_int_equal(out.kind, DISTRIBUTION_UNIFORM);
    assert_int_equal(out.mean, 3);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_list_gives_its_values_in_turn(void **state)
{
    char path[] = "/tmp/spillload-list-XXXXXX";
    char text[64];
    char buffer[DISTRIBUTION_TEXT_BYTES];
    struct distribution list;
    struct rng rng = {{0}};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof(text), "list:%s", path);
    write_file(path, "# sizes\n1KiB\n\n  500 # not a comment, but behind a blank\n4\r\n");
    list = read_one(text, DISTRIBUTION_BYTES);
    assert_int_equal(list.list_count, 3);
    assert_int_equal(list.mean, 509);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(distribution_draw(&list, &rng), 1024);
        assert_int_equal(distribution_draw(&list, &rng), 500);
        assert_int_equal(distribution_draw(&list, &rng), 4);
    }
    assert_int_equal(distribution_draw_for(&list, &rng, 3000001), 500);
    assert_string_equal(distribution_format(&list, DISTRIBUTION_BYTES, buffer), text);
    write_file(path, "1KiB\nx\n");
    assert_int_equal(distribution_read(text, DISTRIBUTION_BYTES, &list), -EINVAL);
    write_file(path, "# nothing\n");
    assert_int_equal(distribution_read(text, DISTRIBUTION_BYTES, &list), -EINVAL);
    assert_int_equal(distribution_draw(&list, &rng), 1024); /* still the one that was read */
    unlink(path);
}

static void what_is_wrong_with_a_list_is_said(void **state)
{
    static const struct {
        const char *contents;
        const char *problem;
    } rows[] = {
        {"1ms\nsoon\n", "line 2: expected a time"},
        {"# nothing\n\n", "no value in it"},
        {"1ms", NULL},
    };
    struct distribution out;
    char path[] = "/tmp/spillload-list-XXXXXX";
    char text[64];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    snprintf(text, sizeof(text), "list:%s", path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, rows[i].contents, strlen(rows[i].contents), 0),
                         (ssize_t)strlen(rows[i].contents));
        int error = distribution_read(text, DISTRIBUTION_NS, &out);

        assert_int_equal(error, rows[i].problem ? -EINVAL : 0);
        if (rows[i].problem)
            assert_non_null(strstr(distribution_list_problem(), rows[i].problem));
        else
            assert_string_equal(distribution_list_problem(), "");
    }
    close(fd);
    unlink(path);
    assert_int_equal(distribution_read("list:/nonexistent", DISTRIBUTION_NS, &out), -ENOENT);
    assert_non_null(strstr(distribution_list_problem(), "/nonexistent: No such file"));
    /* A line that never ends is none. */
    assert_int_equal(distribution_read("list:/dev/zero", DISTRIBUTION_NS, &out), -EINVAL);
    assert_non_null(strstr(distribution_list_problem(), "line 1"));
    assert_int_equal(distribution_read("nonsense", DISTRIBUTION_NS, &out), -EINVAL);
    assert_string_equal(distribution_list_problem(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_have_their_mean_and_spread),
        cmocka_unit_test(unknown_distributions_are_refused),
        cmocka_unit_test(bounded_draws_stay_below_their_bound),
        cmocka_unit_test(draws_follow_their_distribution_function),
        cmocka_unit_test(bimodal_draws_are_nine_to_one),
        cmocka_unit_test(a_bounded_pareto_has_the_mean_it_says),
        cmocka_unit_test(a_lognormal_has_the_mean_and_spread_it_says),
        cmocka_unit_test(the_same_number_draws_the_same),
        cmocka_unit_test(texts_are_read_and_written),
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(a_list_gives_its_values_in_turn),
        cmocka_unit_test(what_is_wrong_with_a_list_is_said),
    };

    return cmocka_run_group_tests(tests, read_seed, NULL);
}
