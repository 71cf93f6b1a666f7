/* SPDX-License-Identifier: Apache-2.0 */
/* Requests prepared and drawn: the bytes of a head, the fields of HTTP/2, the mix's statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/pattern.h"
#include "loadgen/client/http/http_plan.h"
#include "tests/unit/loadgen/statistics.h"

#define DRAWS 200000

static struct flow_spec spec;

static int start_anew(void **state)
{
    (void)state;
    memset(&spec, 0, sizeof(spec));
    snprintf(spec.authority, sizeof(spec.authority), "%s", "origin.example:80");
    spec.http.tenants = 1;
    return 0;
}

static struct flow_http_request *add_request(uint32_t weight, const char *method, const char *path)
{
    struct flow_http_request *request = &spec.http.requests[spec.http.requests_count++];

    request->weight = weight;
    snprintf(request->method, sizeof(request->method), "%s", method);
    snprintf(request->path, sizeof(request->path), "%s", path);
    return request;
}

static struct http_plan *prepare(void)
{
    char problem[HTTP_PLAN_PROBLEM_BYTES];
    struct http_plan *plan = http_plan_create(&spec, problem);

    if (!plan)
        fail_msg("%s", problem);
    return plan;
}

/* Draw of request `number`, from a generator of its own as flows make it. */
static struct http_draw draw_of(const struct http_plan *plan, uint64_t seed, uint64_t number)
{
    struct http_draw draw;
    struct rng rng;

    rng_init(&rng, seed, number);
    http_plan_draw(plan, &rng, number, &draw);
    return draw;
}

static void assert_head(const struct http_plan *plan, const struct http_draw *draw,
                        const char *wanted)
{
    const struct http_template *head = &plan->kinds[draw->kind].head;
    char *out = malloc(head->most_bytes + 1);

    out[http_template_fill(head, &draw->values, out)] = '\0';
    assert_string_equal(out, wanted);
    free(out);
}

static void a_plain_get_is_always_the_same(void **state)
{
    (void)state;
    add_request(1, "GET", "/x?y");
    struct http_plan *plan = prepare();
    struct http_draw draw = draw_of(plan, 1, 7);

    assert_true(http_plan_is_fixed(plan));
    assert_string_equal(plan->kinds[0].name, "GET /x?y");
    assert_head(plan, &draw,
                "GET /x?y HTTP/1.1\r\nHost: origin.example:80\r\nUser-Agent: spillload\r\n\r\n");
    http_plan_destroy(plan);
}

static void an_upload_announces_its_size(void **state)
{
    struct flow_http_request *request = add_request(1, "PUT", "/{number}");

    (void)state;
    request->has_body = true;
    request->body = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 300000};
    snprintf(spec.http.headers, sizeof(spec.http.headers), "%s",
             "Host: other\r\nX-T: {tenant}\r\n");
    spec.http.has_host = true;
    spec.http.close_each = true;
    struct http_plan *plan = prepare();
    struct http_draw draw = draw_of(plan, 1, 7);
    static uint8_t body[300000];

    assert_false(http_plan_is_fixed(plan));
    assert_head(plan, &draw,
                "PUT /7 HTTP/1.1\r\nUser-Agent: spillload\r\nHost: other\r\nX-T: 0\r\n"
                "Connection: close\r\nContent-Length: 300000\r\n\r\n");
    http_plan_body(plan, &draw, 0, body, sizeof(body));
    assert_memory_equal(body, pattern_bytes(), PATTERN_BYTES);
    assert_memory_equal(body + PATTERN_BYTES, pattern_bytes(), sizeof(body) - PATTERN_BYTES);
    http_plan_body(plan, &draw, PATTERN_BYTES - 1, body, 2);
    assert_int_equal(body[0], pattern_bytes()[PATTERN_BYTES - 1]);
    assert_int_equal(body[1], pattern_bytes()[0]);
    http_plan_destroy(plan);
}

static void an_empty_post_says_that_it_is_empty(void **state)
{
    (void)state;
    add_request(1, "POST", "/");
    struct http_plan *plan = prepare();
    struct http_draw draw = draw_of(plan, 1, 0);

    assert_head(plan, &draw,
                "POST / HTTP/1.1\r\nHost: origin.example:80\r\nUser-Agent: spillload\r\n"
                "Content-Length: 0\r\n\r\n");
    http_plan_destroy(plan);
}

static void http2_fields_are_in_lower_case_without_those_of_a_connection(void **state)
{
    (void)state;
    add_request(1, "GET", "/");
    snprintf(
        spec.http.headers, sizeof(spec.http.headers), "%s",
        "Host: other\r\nConnection: close\r\nX-Tenant: t{tenant}\r\nUpgrade: x\r\nX-Empty: \r\n");
    struct http_plan *plan = prepare();

    assert_string_equal(plan->authority, "other");
    assert_int_equal(plan->fields_count, 3);
    assert_string_equal(plan->fields[0].name, "user-agent");
    assert_string_equal(plan->fields[1].name, "x-tenant");
    assert_int_equal(plan->fields[1].value.words, 1U << HTTP_WORD_TENANT);
    assert_string_equal(plan->fields[2].name, "x-empty");
    assert_int_equal(plan->fields[2].value.most_bytes, 0);
    http_plan_destroy(plan);
}

static void a_file_without_a_set_is_refused(void **state)
{
    char problem[HTTP_PLAN_PROBLEM_BYTES];

    (void)state;
    add_request(1, "GET", "/{file}");
    assert_null(http_plan_create(&spec, problem));
    assert_non_null(strstr(problem, "file set"));
}

static void an_uploaded_file_has_the_sets_content_and_size(void **state)
{
    uint8_t sent[5000];
    uint8_t wanted[5000];

    (void)state;
    add_request(1, "PUT", "/{file}");
    spec.set = fileset_defaults;
    spec.set.size = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .mean = 100000};
    struct http_plan *plan = prepare();
    struct http_draw draw = draw_of(plan, 3, 5);

    assert_int_equal(draw.values.body_bytes, fileset_size_bytes(&plan->set, draw.values.file));
    http_plan_body(plan, &draw, 1234, sent, sizeof(sent));
    fileset_content(&plan->set, draw.values.file, 0, 1234, wanted, sizeof(wanted));
    assert_memory_equal(sent, wanted, sizeof(sent));
    http_plan_destroy(plan);
    /* With a size of its own it is no file of the set. */
    spec.http.requests[0].has_body = true;
    spec.http.requests[0].body.mean = 77;
    plan = prepare();
    draw = draw_of(plan, 3, 5);
    assert_int_equal(draw.values.body_bytes, 77);
    http_plan_body(plan, &draw, 0, sent, 77);
    assert_memory_equal(sent, pattern_bytes(), 77);
    http_plan_destroy(plan);
}

static void the_same_number_asks_for_the_same(void **state)
{
    static const uint64_t sizes[] = {10, 20, 30};

    (void)state;
    add_request(1, "GET", "/{file}?{random}");
    add_request(1, "POST", "/{tenant}")->has_body = true;
    spec.http.requests[1].body =
        (struct distribution){.kind = DISTRIBUTION_LIST, .list = sizes, .list_count = 3};
    spec.http.tenants = 100;
    spec.set = fileset_defaults;
    struct http_plan *plan = prepare();
    int posts = 0;

    for (uint64_t number = 0; number < 1000; number++) {
        struct http_draw one = draw_of(plan, 9, number);
        struct http_draw other = draw_of(plan, 9, number);

        assert_memory_equal(&one, &other, sizeof(one));
        if (one.kind == 1) {
            assert_int_equal(one.values.body_bytes, sizes[number % 3]);
            posts++;
        }
    }
    assert_in_range(posts, 400, 600);
    http_plan_destroy(plan);
}

static void assert_shares(const double *counts, const double *shares, size_t kinds)
{
    double expected[32];

    for (size_t i = 0; i < kinds; i++)
        expected[i] = shares[i] * DRAWS;
    assert_counts(counts, expected, kinds, kinds - 1);
}

static void kinds_come_by_their_weights(void **state)
{
    static const double shares[] = {0.5, 0.3, 0.15, 0.05};
    double counts[4] = {0};
    uint64_t seed = statistics_seed();

    (void)state;
    add_request(50, "GET", "/a");
    add_request(30, "GET", "/b");
    add_request(15, "HEAD", "/c");
    add_request(5, "DELETE", "/d");
    struct http_plan *plan = prepare();

    for (uint64_t i = 0; i < DRAWS; i++)
        counts[draw_of(plan, seed, i).kind]++;
    assert_shares(counts, shares, 4);
    http_plan_destroy(plan);
}

static void assert_tenants(double exponent)
{
    enum { TENANTS = 20 };
    double shares[TENANTS];
    double counts[TENANTS] = {0};
    double sum = 0;
    uint64_t seed = statistics_seed();

    spec.http.tenants = TENANTS;
    spec.http.tenant_zipf = exponent;
    struct http_plan *plan = prepare();

    for (int i = 0; i < TENANTS; i++)
        sum += shares[i] = pow(i + 1, -exponent);
    for (int i = 0; i < TENANTS; i++)
        shares[i] /= sum;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t tenant = draw_of(plan, seed, i).values.tenant;

        assert_true(tenant < TENANTS);
        counts[tenant]++;
    }
    assert_shares(counts, shares, TENANTS);
    http_plan_destroy(plan);
}

static void tenants_come_alike_or_by_zipf(void **state)
{
    (void)state;
    add_request(1, "GET", "/{tenant}");
    assert_tenants(0);
    assert_tenants(1.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_plain_get_is_always_the_same, start_anew),
        cmocka_unit_test_setup(an_upload_announces_its_size, start_anew),
        cmocka_unit_test_setup(an_empty_post_says_that_it_is_empty, start_anew),
        cmocka_unit_test_setup(http2_fields_are_in_lower_case_without_those_of_a_connection,
                               start_anew),
        cmocka_unit_test_setup(a_file_without_a_set_is_refused, start_anew),
        cmocka_unit_test_setup(an_uploaded_file_has_the_sets_content_and_size, start_anew),
        cmocka_unit_test_setup(the_same_number_asks_for_the_same, start_anew),
        cmocka_unit_test_setup(kinds_come_by_their_weights, start_anew),
        cmocka_unit_test_setup(tenants_come_alike_or_by_zipf, start_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
