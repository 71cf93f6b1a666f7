/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes of status codes; Retry-After in its forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/client/http/http_reply.h"

#define NS_PER_S 1000000000ULL
/* Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples. */
#define EXAMPLE 784111777

static uint64_t wait_of(const char *value)
{
    return http_reply_retry_after_ns(value, strlen(value), EXAMPLE - 90);
}

static void status_codes(void **state)
{
    static const struct {
        unsigned status;
        enum outcome outcome;
    } cases[] = {
        {200, OUTCOME_OK},       {204, OUTCOME_OK},       {304, OUTCOME_OK},
        {399, OUTCOME_OK},       {400, OUTCOME_HTTP_4XX}, {404, OUTCOME_HTTP_4XX},
        {429, OUTCOME_REFUSED},  {430, OUTCOME_HTTP_4XX}, {499, OUTCOME_HTTP_4XX},
        {500, OUTCOME_HTTP_5XX}, {503, OUTCOME_REFUSED},  {504, OUTCOME_HTTP_5XX},
        {999, OUTCOME_HTTP_5XX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(http_reply_outcome(cases[i].status), cases[i].outcome);
}

static void seconds(void **state)
{
    (void)state;
    assert_int_equal(wait_of("120"), 120 * NS_PER_S);
    assert_int_equal(wait_of("0"), 1);
    /* A year and a day at most, whatever is written. */
    assert_int_equal(wait_of("99999999999999999999999999"), 366ULL * 86400 * NS_PER_S);
}

static void dates(void **state)
{
    (void)state;
    assert_int_equal(wait_of("Sun, 06 Nov 1994 08:49:37 GMT"), 90 * NS_PER_S);
    assert_int_equal(wait_of("Sunday, 06-Nov-94 08:49:37 GMT"), 90 * NS_PER_S);
    assert_int_equal(wait_of("Sun Nov  6 08:49:37 1994"), 90 * NS_PER_S);
    assert_int_equal(wait_of("Sun, 06 Nov 1994 08:48:06 GMT"), 1);
    assert_int_equal(wait_of("Thu, 01 Jan 2099 00:00:00 GMT"), 366ULL * 86400 * NS_PER_S);
}

static void what_cannot_be_read_says_nothing(void **state)
{
    char zeroes[100];
    static const char *const values[] = {"",
                                         "-1",
                                         "1.5",
                                         "soon",
                                         "12 s",
                                         "Sun, 06 Nov 1994 08:49:37 GMT+1",
                                         "Sun, 06 Nov 1994 08:49:37"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_int_equal(wait_of(values[i]), 0);
    /* Longer than anything that says a time. */
    memset(zeroes, '0', sizeof(zeroes));
    assert_int_equal(http_reply_retry_after_ns(zeroes, sizeof(zeroes), EXAMPLE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_codes),
        cmocka_unit_test(seconds),
        cmocka_unit_test(dates),
        cmocka_unit_test(what_cannot_be_read_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
