/* SPDX-License-Identifier: Apache-2.0 */
/* Workload files: what they come to, what is said where about the rest, and what overrides them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/embedded/embedded.h"
#include "loadgen/workload/workload.h"

static char error[WORKLOAD_ERROR_BYTES];

static int read_text(struct workload *workload, const char *text)
{
    workload_init(workload);
    workload->offline = true;
    return workload_read_text(workload, "w.yaml", text, strlen(text), error);
}

static void read_good(struct workload *workload, const char *text)
{
    if (read_text(workload, text) != 0 || workload_check(workload, error) != 0)
        fail_msg("%s", error);
}

static void a_whole_file(void **state)
{
    struct workload workload;

    (void)state;
    read_good(&workload, "duration: 90s\n"
                         "warmup: 5s\n"
                         "drain: 1s\n"
                         "seed: 77\n"
                         "defaults:\n"
                         "  target: 127.0.0.1:80\n"
                         "  rate: 10/s\n"
                         "  export: /vol\n"
                         "  header: {X-A: one}\n"
                         "flows:\n"
                         "  - name: web\n"
                         "    rate: 20/s\n"
                         "    request:\n"
                         "      - {weight: 80, path: /a}\n"
                         "      - {method: PUT, path: /b, body: 4KiB}\n"
                         "      - 3 DELETE /c\n"
                         "    headers: [\"X-B: two\", {X-C: three}]\n"
                         "  - {proto: nfs, mix: {read: 60, write: 40}}\n"
                         "faults:\n"
                         "  - {at: 2s, kind: pause, pid: 12, note: \"a,b\"}\n"
                         "  - cpu,pid=13\n");
    assert_int_equal(workload.duration.ns, 90000000000);
    assert_int_equal(workload.warmup.ns, 5000000000);
    assert_int_equal(workload.drain.ns, 1000000000);
    assert_int_equal(workload.seed, 77);
    assert_int_equal(workload.flows_count, 2);

    const struct flow_spec *web = &workload.flows[0].spec;
    const struct flow_spec *nfs = &workload.flows[1].spec;

    assert_string_equal(workload.flows[0].where, "w.yaml:11:5");
    assert_string_equal(web->name, "web");
    assert_true(web->arrival.rate_per_s == 20);
    assert_string_equal(web->authority, "127.0.0.1:80");
    assert_int_equal(web->http.requests_count, 3);
    assert_int_equal(web->http.requests[0].weight, 80);
    assert_string_equal(web->http.requests[0].method, "GET");
    assert_int_equal(web->http.requests[1].weight, 1);
    assert_int_equal(web->http.requests[1].body.mean, 4096);
    assert_string_equal(web->http.requests[2].method, "DELETE");
    assert_string_equal(web->http.headers, "X-B: two\r\nX-C: three\r\n");

    assert_string_equal(nfs->name, "flow2");
    assert_int_equal(nfs->protocol, FLOW_NFS);
    assert_true(nfs->arrival.rate_per_s == 10);
    assert_string_equal(nfs->nfs.export_path, "/vol");
    assert_int_equal(nfs->nfs.mix[FLOW_READ], 60);
    assert_int_equal(nfs->nfs.mix[FLOW_WRITE], 40);
    assert_string_equal(nfs->http.headers, "");

    assert_int_equal(workload.faults_count, 2);
    assert_string_equal(workload.faults[0], "pause,at=2s,pid=12,note=a\\,b");
    assert_string_equal(workload.faults[1], "cpu,pid=13");
    workload_fini(&workload);
}

static void a_flow_takes_the_defaults_that_suit_it(void **state)
{
    struct workload workload;

    (void)state;
    read_good(&workload, "defaults: {target: \"a:1\", rate: 10/s, op: write, path: /d}\n"
                         "flows:\n"
                         "  - {steps: 5/s:1s}\n"
                         "  - {proto: nfs, mix: {getattr: 1}}\n"
                         "  - {request: [1 GET /own]}\n"
                         "  - {concurrency: 2, think: 1ms}\n");
    assert_true(workload.flows[0].spec.arrival.rate_per_s == 0);
    assert_string_equal(workload.flows[0].spec.http.requests[0].path, "/d");
    assert_int_equal(workload.flows[1].spec.nfs.mix[FLOW_WRITE], 0);
    assert_true(workload.flows[1].spec.arrival.rate_per_s == 10);
    assert_string_equal(workload.flows[2].spec.http.requests[0].path, "/own");
    assert_false(workload.flows[3].spec.open_loop);
    workload_fini(&workload);

    /* The protocol may be a default itself. */
    read_good(&workload,
              "defaults: {target: \"a:1\", export: /vol, path: /d, proto: nfs, rate: 1}\n"
              "flows: [{op: write}, {proto: http}]\n");
    assert_string_equal(workload.flows[0].spec.nfs.export_path, "/vol");
    assert_string_equal(workload.flows[1].spec.http.requests[0].path, "/d");
    workload_fini(&workload);
}

static void steps_in_each_form(void **state)
{
    static const char *const forms[] = {
        "flows: [{target: \"a:1\", steps: 15/s:10m 35/s:5m}]",
        "flows: [{target: \"a:1\", steps: [15/s:10m, 35/s:5m]}]",
        "flows: [{target: \"a:1\", steps: [{rate: 15/s, for: 10m}, {for: 5m, rate: 35}]}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct workload workload;

        read_good(&workload, forms[i]);
        const struct arrival_spec *arrival = &workload.flows[0].spec.arrival;

        assert_int_equal(arrival->steps_count, 2);
        assert_true(arrival->steps[0].rate_per_s == 15 && arrival->steps[1].rate_per_s == 35);
        assert_int_equal(arrival->steps[1].length_ns, 300000000000);
        workload_fini(&workload);
    }
}

static void mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *told;
    } rows[] = {
        {"", "w.yaml: expected a map with duration"},
        {"- a\n", "w.yaml:1:1: expected a map with"},
        {"duration: 5s\n", "w.yaml:1:1: no flows: expected flows: [...] or profile: NAME"},
        {"flows: [\n", "w.yaml:2:1: no YAML: "},
        {"flows: []\n---\nflows: []\n", "w.yaml:3:1: expected the end"},
        {"flows: []\ncolour: red\n", "w.yaml:2:1: unknown key 'colour': expected duration"},
        {"flows: []\nflows: []\n", "w.yaml:2:1: flows is there twice"},
        {"flows: []\nduration: 5\n", "w.yaml:2:11: duration: expected a time with its unit"},
        {"flows: []\nseed: x\n", "w.yaml:2:7: seed: expected a number"},
        {"flows: {}\n", "w.yaml:1:8: flows: expected a list of flows"},
        {"flows: []\ndefaults: 3\n", "w.yaml:2:11: defaults: expected a map of keys"},
        {"flows: [3]\n", "w.yaml:1:9: expected a flow, a map of its keys"},
        {"flows:\n  - rate: fast\n", "w.yaml:2:11: rate=fast: expected a rate above 0"},
        {"flows:\n  - hue: 5\n", "w.yaml:2:10: unknown key 'hue'"},
        {"flows:\n  - {rate: 1, rate: 2}\n", "w.yaml:2:15: rate is there twice"},
        {"flows:\n  - {rate: [1]}\n", "w.yaml:2:12: rate: expected a plain value"},
        {"flows:\n  - {header: 5}\n", "w.yaml:2:14: header=5: expected NAME:VALUE"},
        {"flows:\n  - {header: [[x]]}\n", "w.yaml:2:15: expected NAME: VALUE"},
        {"flows:\n  - {header: {A: [x]}}\n", "w.yaml:2:18: expected the value of a header"},
        {"flows:\n  - {request: {weight: 1}}\n", "w.yaml:2:15: request: expected a list"},
        {"flows:\n  - {request: [{weight: 1}]}\n", "w.yaml:2:16: path is missing in this request"},
        {"flows:\n  - {request: [{pth: /}]}\n", "w.yaml:2:17: unknown key 'pth'"},
        {"flows:\n  - {request: [{path: x}]}\n", "w.yaml:2:16: request=1 GET x: expected WEIGHT"},
        {"flows:\n  - {steps: {a: b}}\n", "w.yaml:2:13: steps: expected a list or one text"},
        {"flows:\n  - {steps: [{rate: 1}]}\n", "w.yaml:2:14: expected {rate: RATE, for: TIME}"},
        {"flows:\n  - {steps: [[1]]}\n", "w.yaml:2:14: expected {rate: RATE, for: TIME}"},
        {"flows:\n  - {steps: []}\n", "w.yaml:2:13: steps=: expected RATE:TIME"},
        {"flows:\n  - {proto: nfs, mix: {read: [1]}}\n", "w.yaml:2:30: expected a weight"},
        {"flows:\n  - {proto: nfs, mix: {fly: 1}}\n",
         "w.yaml:2:23: mix=fly:1: expected operations"},
        {"flows:\n  - {[a]: 1}\n", "w.yaml:2:6: expected the name of a key"},
        {"defaults: {rate: fast}\nflows: []\n", "w.yaml:1:18: rate=fast: expected a rate"},
        {"flows: []\nfaults: [[x]]\n", "w.yaml:2:10: expected {kind: KIND, ...}"},
        {"flows: []\nfaults: [{pid: 5}]\n", "w.yaml:2:10: expected kind: NAME"},
        {"flows: []\nfaults: [{kind: a, pid: [5]}]\n", "w.yaml:2:25: pid: expected a plain value"},
        {"profile: nothing\n", "profile nothing: there is none of this name"},
        {"flows:\n  - {rate: 1/s, target: \"a:1\"}\n  - {rate: 1/s}\n",
         "w.yaml:3:5: target=HOST:PORT is missing"},
        {"flows:\n  - {name: a, rate: 1/s, target: \"a:1\"}\n"
         "  - {name: a, rate: 1/s, target: \"a:1\"}\n",
         "w.yaml:3:5: name a: expected names that differ"},
        {"duration: 0s\nflows: [{rate: 1/s, target: \"a:1\"}]",
         "duration: expected a time above 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct workload workload;

        error[0] = '\0';
        if (read_text(&workload, rows[i].text) == 0 && workload_check(&workload, error) == 0)
            fail_msg("'%s' was taken", rows[i].text);
        if (strncmp(error, rows[i].told, strlen(rows[i].told)) != 0)
            fail_msg("'%s': '%s' instead of '%s'", rows[i].text, error, rows[i].told);
        workload_fini(&workload);
    }
}

static void too_many_flows(void **state)
{
    static const char head[] = "defaults: {target: \"a:1\"}\nflows:\n";
    static const char flow[] = "  - {rate: 1/s}\n";
    char text[sizeof(head) + (WORKLOAD_MAX_FLOWS + 1) * sizeof(flow)];
    size_t length = sizeof(head) - 1;
    struct workload workload;

    (void)state;
    memcpy(text, head, sizeof(head));
    for (int i = 0; i <= WORKLOAD_MAX_FLOWS; i++) {
        if (i == WORKLOAD_MAX_FLOWS) {
            read_good(&workload, text);
            assert_int_equal(workload.flows_count, 64);
            assert_true(workload_add_flow(&workload, "rate=1/s", error) < 0);
            assert_string_equal(error, "--flow rate=1/s: expected at most 64 flows");
            workload_fini(&workload);
        }
        memcpy(text + length, flow, sizeof(flow));
        length += sizeof(flow) - 1;
    }
    assert_true(read_text(&workload, text) < 0);
    assert_string_equal(error, "w.yaml:67:5: expected at most 64 flows");
    workload_fini(&workload);
}

static void a_profile_in_a_file(void **state)
{
    struct workload workload;

    (void)state;
    read_good(&workload, "profile: square-wave\n"
                         "duration: 1m\n"
                         "defaults: {target: \"a:1\", concurrency: 7}\n"
                         "flows: [{name: more, rate: 1/s}]\n");
    assert_int_equal(workload.flows_count, 2);
    assert_string_equal(workload.flows[0].spec.name, "square-wave");
    assert_string_equal(workload.flows[0].spec.authority, "a:1");
    assert_int_equal(workload.flows[0].spec.concurrency, 7);
    assert_int_equal(workload.duration.ns, 60000000000);
    workload_fini(&workload);
}

static void overrides(void **state)
{
    static const char text[] = "duration: 40m\n"
                               "flows:\n"
                               "  - {name: a, steps: 15/s:10m, start: 10m, stop: 20m}\n"
                               "  - {name: b, proto: nfs, rate: 5/s, target: \"b:1\"}\n"
                               "  - {name: c, concurrency: 5}\n";
    struct workload workload;

    (void)state;
    assert_int_equal(read_text(&workload, text), 0);
    assert_int_equal(workload_target(&workload, "a:1", error), 0);
    assert_int_equal(workload_speed(&workload, "60", error), 0);
    assert_int_equal(workload_scale(&workload, "2", error), 0);
    assert_int_equal(workload_set(&workload, "path", "/x", error), 0);
    assert_int_equal(workload_set(&workload, "timeout", "3s", error), 0);
    assert_int_equal(workload_set(&workload, "timeout", "4s", error), 0);
    assert_int_equal(workload_check(&workload, error), 0);
    assert_int_equal(workload.duration.ns, 40000000000);
    assert_string_equal(workload.flows[0].spec.authority, "a:1");
    assert_string_equal(workload.flows[1].spec.authority, "b:1");
    assert_true(workload.flows[0].spec.arrival.speed == 60);
    assert_int_equal(workload.flows[0].spec.start_ns, 10000000000);
    assert_int_equal(workload.flows[0].spec.stop_ns, 20000000000);
    assert_true(workload.flows[1].spec.arrival.scale == 2);
    assert_string_equal(workload.flows[2].spec.http.requests[0].path, "/x");
    assert_int_equal(workload.flows[1].spec.timeout_ns, 4000000000);

    assert_true(workload_set(&workload, "timeout", "0", error) < 0);
    assert_string_equal(error, "timeout=0: expected a time above 0, as 30s (in w.yaml:3:5)");
    assert_true(workload_set(&workload, "hue", "0", error) < 0);
    assert_non_null(strstr(error, "--set: unknown key 'hue'"));
    workload_fini(&workload);

    assert_int_equal(read_text(&workload, "flows: [{concurrency: 5, target: \"a:1\"}]"), 0);
    assert_true(workload_speed(&workload, "2", error) < 0);
    assert_true(workload_scale(&workload, "2", error) < 0);
    assert_true(workload_set(&workload, "export", "/x", error) < 0);
    assert_string_equal(error, "--set export: no flow is of the protocol it is for");
    workload_fini(&workload);
}

static void every_profile_is_good_with_a_target(void **state)
{
    size_t count = 0;

    (void)state;
    for (; embedded_profile_name(count); count++) {
        struct workload workload;
        struct embedded_file file;
        char path[128];

        workload_init(&workload);
        if (workload_read_profile(&workload, embedded_profile_name(count), error) != 0 ||
            workload_target(&workload, "127.0.0.1:1", error) != 0 ||
            workload_check(&workload, error) != 0)
            fail_msg("%s", error);
        assert_true(workload.duration.given);
        workload_fini(&workload);

        /* The file itself is what is built in. */
        snprintf(path, sizeof(path), "conf/profiles/%s.yaml", embedded_profile_name(count));
        FILE *source = fopen(path, "re");
        char *text = malloc(65536);

        assert_true(embedded_profile(embedded_profile_name(count), &file));
        assert_non_null(source);
        assert_non_null(text);
        size_t length = fread(text, 1, 65536, source);

        fclose(source);
        assert_int_equal(length, file.length);
        assert_memory_equal(text, file.text, length);
        free(text);
    }
    assert_int_equal(count, 11);
}

static void the_samples_are_good(void **state)
{
    static const char *const samples[] = {"conf/workloads/web-farm.yaml",
                                          "conf/workloads/storage-array.yaml"};

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct workload workload;

        workload_init(&workload);
        if (workload_read_file(&workload, samples[i], error) != 0 ||
            workload_target(&workload, "127.0.0.1:1", error) != 0 ||
            workload_check(&workload, error) != 0)
            fail_msg("%s", error);
        workload_fini(&workload);
    }
}

static void files_that_can_not_be_read(void **state)
{
    struct workload workload;

    (void)state;
    workload_init(&workload);
    assert_true(workload_read_file(&workload, "/nowhere/at.all", error) < 0);
    assert_string_equal(error, "/nowhere/at.all: No such file or directory");
    assert_true(workload_read_file(&workload, "/dev/zero", error) < 0);
    assert_string_equal(error, "/dev/zero: expected a file of at most 1 MiB");
    assert_true(workload_read_file(&workload, "/", error) < 0);
    workload_fini(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file),
        cmocka_unit_test(a_flow_takes_the_defaults_that_suit_it),
        cmocka_unit_test(steps_in_each_form),
        cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(too_many_flows),
        cmocka_unit_test(a_profile_in_a_file),
        cmocka_unit_test(overrides),
        cmocka_unit_test(every_profile_is_good_with_a_target),
        cmocka_unit_test(the_samples_are_good),
        cmocka_unit_test(files_that_can_not_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
