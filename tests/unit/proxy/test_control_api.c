/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane's requests against a runtime whose workers don't run: paths, bodies, changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <event2/buffer.h>
#include <jansson.h>

#include "proxy/control/api/api.h"
#include "proxy/core/runtime.h"

static const char config_text[] =
    "workers: 1\n"
    "listeners:\n"
    "  - { name: web, bind: \"127.0.0.1:1\", protocol: http, pool: farm }\n"
    "  - { name: nas, bind: \"127.0.0.1:2\", protocol: nfs, pool: array }\n"
    "pools:\n"
    "  - name: farm\n"
    "    servers:\n"
    "      - { name: s1, address: \"127.0.0.1:3\", depth: 4 }\n"
    "      - { address: \"unix:/run/x y\", depth: 5 }\n"
    "    flows: [ { name: gold, weight: 2, match: { path: /g } } ]\n"
    "  - name: array\n"
    "    servers: [ { name: a1, address: \"127.0.0.1:4\", depth: 32 } ]\n";

struct fixture {
    struct runtime *runtime;
    char path[64];
    struct evbuffer *body;
    struct api_reply reply;
    char text[65536]; /* of the answer */
    json_t *json;     /* the answer, when it is JSON */
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct config *config = NULL;
    struct config_errors errors;

    if (fixture == NULL)
        return -1;
    strcpy(fixture->path, "/tmp/spillway-api-XXXXXX");
    int fd = mkstemp(fixture->path);
    if (fd < 0 || write(fd, config_text, strlen(config_text)) < 0)
        return -1;
    close(fd);
    config_errors_init(&errors);
    if (config_load_text("test", config_text, strlen(config_text), 0, &config, &errors) < 0) {
        config_errors_print(&errors, stderr);
        return -1;
    }
    config_errors_fini(&errors);
    fixture->runtime = runtime_create(config, fixture->path);
    fixture->body = evbuffer_new();
    *state = fixture;
    return fixture->runtime != NULL && fixture->body != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    json_decref(fixture->json);
    evbuffer_free(fixture->body);
    runtime_destroy(fixture->runtime);
    unlink(fixture->path);
    free(fixture);
    return 0;
}

static int ask(struct fixture *fixture, const struct api_request *request)
{
    fixture->reply = (struct api_reply){.body = fixture->body};
    api_handle(fixture->runtime, request, &fixture->reply);
    size_t length = evbuffer_get_length(fixture->body);
    assert_true(length < sizeof(fixture->text));
    evbuffer_remove(fixture->body, fixture->text, length);
    fixture->text[length] = '\0';
    json_decref(fixture->json);
    fixture->json = json_loads(fixture->text, 0, NULL);
    return fixture->reply.status;
}

static int get(struct fixture *fixture, const char *path)
{
    struct api_request request = {.method = API_GET, .path = path, .body = ""};

    return ask(fixture, &request);
}

static int post(struct fixture *fixture, const char *path, const char *body)
{
    struct api_request request = {
        .method = API_POST,
        .path = path,
        .body = body,
        .body_length = strlen(body),
        .may_change = true,
    };

    return ask(fixture, &request);
}

/* The member of the view's row of that name. */
static const json_t *member(struct fixture *fixture, const char *view, const char *name,
                            const char *key)
{
    const json_t *row;
    size_t i;

    assert_int_equal(get(fixture, view), 200);
    json_array_foreach(fixture->json, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            return json_object_get(row, key);
    }
    fail_msg("%s has no row %s", view, name);
    return NULL;
}

static json_int_t number(struct fixture *fixture, const char *view, const char *name,
                         const char *key)
{
    return json_integer_value(member(fixture, view, name, key));
}

static const char *error_of(struct fixture *fixture)
{
    const char *text = json_string_value(json_object_get(fixture->json, "error"));

    assert_non_null(text);
    return text;
}

static void assert_says(struct fixture *fixture, const char *words)
{
    if (strstr(error_of(fixture), words) == NULL)
        fail_msg("'%s' is not in '%s'", words, error_of(fixture));
}

/* ------------------------------------------------------------------ reading */

static void views_show_the_configuration(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 9);
    assert_int_equal(number(fixture, "/v1/pools", "array", "depth"), 32);
    assert_string_equal(json_string_value(member(fixture, "/v1/pools", "array", "protocol")),
                        "nfs");
    assert_int_equal(number(fixture, "/v1/flows", "gold", "weight"), 2);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "depth"), 4);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "up"), 1);
    assert_int_equal(number(fixture, "/v1/listeners", "web", "connections_open"), 0);
    assert_non_null(json_object_get(member(fixture, "/v1/flows", "gold", "wait"), "p99_seconds"));
}

static void the_status_is_one_object(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(get(fixture, "/v1/status"), 200);
    assert_int_equal(json_integer_value(json_object_get(fixture->json, "workers")), 1);
    assert_int_equal(json_integer_value(json_object_get(fixture->json, "pid")), getpid());
    assert_true(json_is_false(json_object_get(fixture->json, "draining")));
}

static void the_metrics_page_has_every_scope(void **state)
{
    static const char *const samples[] = {
        "\nspillway_workers 1\n",
        "\nspillway_listener_connections_open{listener=\"nas\"} 0\n",
        "\nspillway_pool_depth{pool=\"farm\"} 9\n",
        "\nspillway_pool_offered_total{pool=\"farm\"} 0\n",
        "\nspillway_pool_admission_share{pool=\"farm\"} 0\n",
        "\nspillway_pool_admission_limit{pool=\"farm\"} 64\n",
        "\nspillway_flow_admitted_total{pool=\"farm\",flow=\"gold\"} 0\n",
        "\nspillway_flow_admission_refused_total{pool=\"farm\",flow=\"gold\"} 0\n",
        "\nspillway_flow_marked_total{pool=\"farm\",flow=\"gold\"} 0\n",
        "\nspillway_flow_weight{pool=\"farm\",flow=\"gold\"} 2\n",
        "\nspillway_server_up{pool=\"array\",server=\"a1\"} 1\n",
        "\nspillway_flow_wait_seconds_count{pool=\"farm\",flow=\"gold\"} 0\n",
    };
    struct fixture *fixture = *state;

    assert_int_equal(get(fixture, "/metrics"), 200);
    assert_non_null(strstr(fixture->reply.content_type, "version=0.0.4"));
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        if (strstr(fixture->text, samples[i]) == NULL)
            fail_msg("no line '%s'", samples[i]);
    }
}

static void unknown_paths_are_404(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "*",
        "/v1",
        "/v1/",
        "/v1/pool",
        "/v1/poolss",
        "/v1/pools/",
        "/v1/pools/farm",
        "/metrics/x",
        "/v1/%00",
        "/v1/pools%00",
        "/../metrics",
        "/a/b/c/d/e/f",
        "/v1//pools",
        "v1/pools",
    };
    struct fixture *fixture = *state;
    static char long_path[5000];

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_int_equal(get(fixture, paths[i]), 404);
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[0] = '/';
    assert_int_equal(get(fixture, long_path), 404);
}

/* ------------------------------------------------------------------ changing */

static void changes_show_in_the_views(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(post(fixture, "/v1/pools/farm/flows/gold", "{\"weight\": 7}"), 200);
    assert_int_equal(number(fixture, "/v1/flows", "gold", "weight"), 7);
    assert_int_equal(post(fixture, "/v1/pools/farm/servers/s1", "{\"depth\": 2}"), 200);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "depth"), 2);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 7);
    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"depth\": 3}"), 200);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 3);
    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"depth\": 0}"), 200);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 7);
    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"algorithm\": \"fifo\"}"), 200);
    assert_string_equal(json_string_value(member(fixture, "/v1/pools", "farm", "algorithm")),
                        "fifo");
}

static void promises_and_options_read_as_in_the_file(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"algorithm\": \"mclock\"}"), 200);
    assert_int_equal(post(fixture, "/v1/pools/farm/flows/gold", "{\"limit\": \"500/s\"}"), 200);
    assert_null(json_object_get(fixture->json, "messages"));
    assert_int_equal(number(fixture, "/v1/flows", "gold", "limit_per_second"), 500);
    assert_int_equal(number(fixture, "/v1/flows", "gold", "burst"), 5);
    assert_int_equal(post(fixture, "/v1/pools/farm/flows/gold", "{\"burst\": 3}"), 200);
    assert_int_equal(number(fixture, "/v1/flows", "gold", "burst"), 3);
    assert_int_equal(post(fixture, "/v1/pools/farm/flows/gold", "{\"target\": \"20ms\"}"), 200);
    assert_non_null(json_string_value(json_object_get(fixture->json, "messages")));
    assert_true(json_real_value(member(fixture, "/v1/flows", "gold", "target_seconds")) == 0.02);
    assert_int_equal(number(fixture, "/v1/flows", "gold", "queue_limit"), 1024);
    assert_int_equal(post(fixture, "/v1/pools/farm/flows/gold", "{\"queue-limit\": \"9\"}"), 200);
    assert_int_equal(number(fixture, "/v1/flows", "gold", "queue_limit"), 9);
    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"slack\": 2}"), 200);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "slack"), 2);
    assert_int_equal(post(fixture, "/v1/pools/farm", "{\"at-limit\": \"refuse\"}"), 200);
    assert_string_equal(json_string_value(member(fixture, "/v1/pools", "farm", "at_limit_policy")),
                        "refuse");
}

static const char *text_of(struct fixture *fixture, const char *pool, const char *key)
{
    return json_string_value(member(fixture, "/v1/pools", pool, key));
}

/* The last change was made; what was said of it, "" for nothing. */
static const char *remark_of(struct fixture *fixture, const char *path, const char *body)
{
    assert_int_equal(post(fixture, path, body), 200);
    const char *text = json_string_value(json_object_get(fixture->json, "messages"));
    return text != NULL ? text : "";
}

static void admission_is_set_while_running(void **state)
{
    struct fixture *fixture = *state;

    assert_string_equal(text_of(fixture, "farm", "admission"), "none");
    assert_string_equal(text_of(fixture, "farm", "admission_action"), "refuse");
    assert_string_equal(text_of(fixture, "array", "admission_action"), "mark");
    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission\": \"codel\"}"), "");
    assert_string_equal(text_of(fixture, "farm", "admission"), "codel");
    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission-target\": \"7ms\"}"),
                        "");
    assert_true(json_real_value(member(fixture, "/v1/pools", "farm", "admission_target_seconds")) ==
                0.007);
    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission-interval\": \"70ms\"}"),
                        "");
    assert_true(json_real_value(
                    member(fixture, "/v1/pools", "farm", "admission_interval_seconds")) == 0.07);
    assert_string_equal(
        remark_of(fixture, "/v1/pools/array", "{\"admission-action\": \"refuse\"}"),
        "admission-action has no effect under admission none; it is for those that keep something "
        "out");
    assert_string_equal(text_of(fixture, "array", "admission_action"), "refuse");
    remark_of(fixture, "/v1/pools/array", "{\"admission-action\": \"auto\"}");
    assert_string_equal(text_of(fixture, "array", "admission_action"), "mark");
    assert_string_equal(text_of(fixture, "farm", "admission_action"), "refuse");
}

static void what_the_policy_does_not_read_is_kept_and_said(void **state)
{
    struct fixture *fixture = *state;

    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission\": \"duk\"}"), "");
    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission-limit\": 9}"),
                        "admission-limit has no effect under admission duk; it is for tail");
    assert_int_equal(number(fixture, "/v1/pools", "farm", "admission_limit"), 9);
    assert_string_equal(remark_of(fixture, "/v1/pools/farm", "{\"admission\": \"tail\"}"), "");
    /* tail's allowance is its limit: the policy itself has been told. */
    assert_true(json_real_value(member(fixture, "/v1/pools", "farm", "admission_allowed")) == 9);
}

static void drained_servers_are_not_up(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(post(fixture, "/v1/pools/farm/servers/s1", "{\"state\": \"drain\"}"), 200);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "up"), 0);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "draining"), 1);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 5);
    assert_int_equal(post(fixture, "/v1/pools/farm/servers/s1", "{\"state\": \"ready\"}"), 200);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "up"), 1);
}

static void names_are_percent_encoded(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(post(fixture, "/v1/pools/farm/servers/unix:%2Frun%2fx%20y", "{\"depth\": 8}"),
                     200);
    assert_int_equal(number(fixture, "/v1/servers", "unix:/run/x y", "depth"), 8);
}

static void mistakes_are_said_and_change_nothing(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *words;
    } mistakes[] = {
        {"/v1/pools/barn", "{\"depth\": 1}", 404, "there are: farm array"},
        {"/v1/pools/farm/flows/lead", "{\"weight\": 1}", 404, "gold"},
        {"/v1/pools/farm/servers/s9", "{\"depth\": 1}", 404, "s1"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": 0}", 400, "1 to 1000000"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": -1}", 400, "1 to 1000000"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": 1000001}", 400, "1 to 1000000"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": 1.5}", 400, "whole number"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": \"3\"}", 400, "whole number"},
        {"/v1/pools/farm/flows/gold", "{\"wait\": 3}", 400, "weight"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": 3, \"x\": 1}", 400, "one setting"},
        {"/v1/pools/farm/flows/gold", "{}", 400, "one setting"},
        {"/v1/pools/farm/flows/gold", "", 400, "JSON"},
        {"/v1/pools/farm/flows/gold", "{\"weight\": 3", 400, "JSON"},
        {"/v1/pools/farm/flows/gold", "[3]", 400, "JSON"},
        {"/v1/pools/farm", "{\"algorithm\": \"lottery\"}", 400, "lottery"},
        {"/v1/pools/farm", "{\"algorithm\": 3}", 400, "string"},
        {"/v1/pools/farm", "{\"depth\": -1}", 400, "whole number"},
        {"/v1/pools/farm", "{\"weight\": 3}", 400, "algorithm"},
        {"/v1/pools/farm", "{\"slack\": -1}", 400, "slack: `-1` is not a whole number"},
        {"/v1/pools/farm", "{\"slack\": null}", 400, "string as in the configuration file"},
        {"/v1/pools/farm", "{\"capacity\": 5}", 400, "100/s"},
        {"/v1/pools/barn", "{\"slack\": 1}", 404, "there are: farm array"},
        {"/v1/pools/barn", "{\"admission\": \"duk\"}", 404, "there are: farm array"},
        {"/v1/pools/farm", "{\"admission\": \"red\"}", 400, "none, tail, codel, pie, duk-literal"},
        {"/v1/pools/farm", "{\"admission\": true}", 400, "string as in the configuration file"},
        {"/v1/pools/farm", "{\"admission-action\": \"drop\"}", 400, "auto, refuse, mark"},
        {"/v1/pools/farm", "{\"admission-limit\": 0}", 400, "from 1 to 100000000"},
        {"/v1/pools/farm", "{\"admission-target\": 5}", 400, "has no unit of time"},
        {"/v1/pools/farm", "{\"admission-speed\": 1}", 400, "admission-interval"},
        {"/v1/pools/farm/flows/gold", "{\"admission\": \"duk\"}", 400, "no setting"},
        {"/v1/pools/farm/flows/gold", "{\"limit\": \"5\"}", 400, "/s behind it"},
        {"/v1/pools/farm/flows/gold", "{\"limit\": [1]}", 400, "string"},
        {"/v1/pools/farm/flows/gold", "{\"slack\": 1}", 400, "no setting"},
        {"/v1/pools/farm/flows/lead", "{\"limit\": \"1/s\"}", 404, "gold"},
        {"/v1/pools/farm/servers/s1", "{\"depth\": 0}", 400, "from 1"},
        {"/v1/pools/farm/servers/s1", "{\"state\": \"dead\"}", 400, "drain"},
        {"/v1/pools/farm/servers/s1", "{\"state\": null}", 400, "string"},
        {"/v1/pools/farm/servers/s1", "{\"speed\": 1}", 400, "state"},
        {"/v1/pools", "{\"depth\": 1}", 404, "nothing to change"},
        {"/v1/pools/farm/flows", "{\"weight\": 1}", 404, "nothing to change"},
        {"/v1/status", "{}", 404, "nothing to change"},
        {"/metrics", "", 404, "nothing to change"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        assert_int_equal(post(fixture, mistakes[i].path, mistakes[i].body), mistakes[i].status);
        assert_says(fixture, mistakes[i].words);
    }
    assert_int_equal(number(fixture, "/v1/flows", "gold", "weight"), 2);
    assert_int_equal(number(fixture, "/v1/servers", "s1", "depth"), 4);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 9);
}

static void reading_addresses_change_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct api_request request = {
        .method = API_POST,
        .path = "/v1/pools/farm",
        .body = "{\"depth\": 1}",
        .body_length = strlen("{\"depth\": 1}"),
    };

    assert_int_equal(ask(fixture, &request), 403);
    request.path = "/v1/reload";
    assert_int_equal(ask(fixture, &request), 403);
    request.method = API_OTHER;
    assert_int_equal(ask(fixture, &request), 405);
    assert_int_equal(number(fixture, "/v1/pools", "farm", "depth"), 9);
}

static void a_reload_that_fails_tells_why(void **state)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(fixture->path, "ae");

    assert_non_null(file);
    fprintf(file, "nonsense-key: 1\n");
    fclose(file);
    assert_int_equal(post(fixture, "/v1/reload", ""), 409);
    assert_says(fixture, "nonsense-key");
    unlink(fixture->path);
    assert_int_equal(post(fixture, "/v1/reload", ""), 409);
    assert_says(fixture, fixture->path);
    assert_int_equal(get(fixture, "/v1/status"), 200);
    assert_int_equal(json_integer_value(json_object_get(fixture->json, "reloads_failed")), 2);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(views_show_the_configuration),
        API_TEST(the_status_is_one_object),
        API_TEST(the_metrics_page_has_every_scope),
        API_TEST(unknown_paths_are_404),
        API_TEST(changes_show_in_the_views),
        API_TEST(drained_servers_are_not_up),
        API_TEST(promises_and_options_read_as_in_the_file),
        API_TEST(admission_is_set_while_running),
        API_TEST(what_the_policy_does_not_read_is_kept_and_said),
        API_TEST(drained_servers_are_not_up),
        API_TEST(names_are_percent_encoded),
        API_TEST(mistakes_are_said_and_change_nothing),
        API_TEST(reading_addresses_change_nothing),
        API_TEST(a_reload_that_fails_tells_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
