/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of a flow: values that are taken, values that are not, and what they come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loadgen/client/flow_spec.h"
#include "loadgen/client/keys/keys.h"

#define HTTP  "target=127.0.0.1:80,"
#define HTTPS "proto=https,target=127.0.0.1:80,"
#define NFS   "proto=nfs,target=127.0.0.1:2049,"
#define SET   "files=100,"

static const struct key_group *const groups[] = {
    &key_group_common, &key_group_arrival, &key_group_http,
    &key_group_nfs,    &key_group_fileset, &key_group_simulated,
};

/* Of each key of sent flows what is taken and what is not, up to four of each. */
static const struct {
    const char *key;
    const char *good[5];
    const char *bad[5];
} values[] = {
    {"name", {"a", "with blank"}, {"", "12345678901234567890123456789012", "a\nb"}},
    {"proto", {"http", "https", "h2", "h2c"}, {"", "HTTP", "smb", "nfs4"}},
    {"proto", {"nfs"}, {"nfs3"}},
    {"target", {"127.0.0.1:80", "[::1]:80"}, {"", "127.0.0.1", "127.0.0.1:x", ":80"}},
    {"concurrency", {"1", "65000"}, {"0", "65001", "x", "-1"}},
    {"think", {"0", "10ms", "exponential:10ms", "lognormal:10ms:1.5"}, {"", "10", "x:10ms", "-1s"}},
    {"think-distribution", {"fixed", "exponential", "uniform", "bimodal"}, {"pareto", "", "list"}},
    {"pause", {"0", "100ms"}, {"", "1", "x"}},
    {"retry", {"1ns", "500ms"}, {"0", "", "1"}},
    {"retries", {"1", "4294967295"}, {"0", "4294967296", "x"}},
    {"retry-after", {"yes", "no", "true", "false"}, {"", "maybe", "1"}},
    {"seed", {"0", "9223372036854775807"}, {"", "-1", "x", "9223372036854775808"}},
    {"start", {"0", "2s"}, {"", "2"}},
    {"stop", {"1ms", "2h"}, {"0", "2"}},
    {"timeout", {"1ms"}, {"0", "x"}},
    {"connections", {"1", "65000"}, {"0", "65001"}},
    {"rate", {"120/s", "0.5", "30/m", "100000000/s"}, {"0", "0/s", "100000001/s", "-1/s"}},
    {"arrival", {"poisson", "constant"}, {"", "pareto"}},
    {"on", {"1s"}, {"0", ""}},
    {"off", {"0", "1s"}, {"", "x"}},
    {"steps",
     {"15/s:10m", "15/s:10m 35/s:10m", " 0:1s  5/s:1s ", "0/s:1s 1:1s"},
     {"", "0:1s", "15/s", "15/s:0"}},
    {"steps", {"1:1s\t2:1s"}, {"15/s:10m,35/s:10m", "15/s:10m x", ":1s", "15/s:"}},
    {"sine", {"50/s:60s"}, {"0:60s", "50/s:0", "50/s", ""}},
    {"ramp", {"500/s:30s", "0:1s"}, {"500/s:0", "500/s", "x:1s", "-1:1s"}},
    {"trace", {"file.trace", "big-spike", "/x/y"}, {"", "a\nb"}},
    {"repeat", {"yes", "no"}, {"twice"}},
    {"speed", {"1", "60", "0.5"}, {"0", "", "1000001", "1e3"}},
    {"scale", {"2", "0.25"}, {"0", "x", "-2", ".5"}},
    {"bytes", {"0", "4096", "64KiB"}, {"", "x", "-1"}},
    {"method", {"GET", "PROPFIND"}, {"", "get", "CONNECT", "G T"}},
    {"path",
     {"/", "/x?y=1", "/{file}", "/{number}/{tenant}/{random}"},
     {"", "x", "/a b", "/{files}"}},
    {"path", {"/{tenant}{file}"}, {"/{", "/}", "/{file", "/{FILE}"}},
    {"body", {"0", "4KiB", "pareto:1.2:1KiB:1MiB", "uniform:10KiB"}, {"", "x", "uniform:"}},
    {"request",
     {"1 GET /", "80 PUT /x 4KiB", "1  POST  /{random}\texponential:1KiB"},
     {"", "GET /", "0 GET /", "1 get /"}},
    {"request", {"1000000 GET /"}, {"1 GET", "1 GET x", "1 GET / 4KiB surplus", "1000001 GET /"}},
    {"header", {"A:b", "A: b", "X-Tenant: {tenant}", "A:"}, {"", "A", ":b", "A b:c"}},
    {"tenants", {"1", "1000000", "100:0.9"}, {"0", "", "100:", "100:0"}},
    {"keep-alive", {"yes", "no"}, {"", "on"}},
    {"streams", {"1", "1000"}, {"0", "1001"}},
    {"tls-verify", {"yes", "no"}, {"", "never"}},
    {"tls-ca", {"/etc/ca.pem"}, {""}},
    {"server-name", {"example.org"}, {"", "a:80", "a b"}},
    {"version", {"3", "4.0", "4.1"}, {"", "2", "4", "4.2"}},
    {"op", {"read", "write", "getattr", "lookup"}, {"", "rename", "READ", "read:1"}},
    {"op", {"access", "setattr", "readdir", "create"}, {"open"}},
    {"op", {"remove", "commit", "fsstat"}, {"statfs"}},
    {"mix",
     {"read:60 write:40", "fsstat:1", "sfs97", "sfs2008"},
     {"", "read", "read:0", "read:1 read:2"}},
    {"mix", {"web", "mail"}, {"read:60,write:40", "sfs", "read:x", "open:1"}},
    {"transfer", {"4096", "64KiB", "pareto:1.2:1KiB:1MiB"}, {"0", "", "x"}},
    {"order", {"random", "sequential"}, {"", "backwards"}},
    {"stable", {"yes", "no"}, {"", "unstable"}},
    {"verify", {"yes", "no"}, {"", "all"}},
    {"export", {"/", "/vol/x"}, {"", "vol"}},
    {"file", {"data"}, {"", "a/b"}},
    {"populate", {"yes", "no"}, {"", "once"}},
    {"uid", {"0", "4294967295"}, {"", "4294967296", "root"}},
    {"gid", {"0", "100"}, {"", "-1"}},
    {"files", {"1", "1000000000"}, {"0", "1000000001", ""}},
    {"set", {"web", "a/b"}, {"", "/a", "../a", "a/../b"}},
    {"depth", {"0", "8"}, {"9", ""}},
    {"width", {"1", "1000"}, {"0", "1001"}},
    {"size", {"0", "16KiB", "pareto:1.1:500:10MiB"}, {"", "x"}},
    {"popularity",
     {"uniform", "zipf:0.9", "hot:20%:80%", "hot:0.2:0.8"},
     {"", "zipf", "zipf:0", "hot:20%"}},
    {"popularity", {"zipf:1.3", "hot:100%:100%"}, {"hot:0%:80%", "hot:101%:80%", "hot:2:1"}},
    {"set-seed", {"0", "7"}, {"", "x"}},
};

#define VALUES (sizeof(values) / sizeof(values[0]))

static void set_alone(const char *key, const char *value, int expected)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    flow_spec_init(&spec);
    int result = flow_spec_set(&spec, FLOW_SENT, key, value, error);

    if (result != expected)
        fail_msg("%s=%s: %d, '%s'", key, value, result, error);
    assert_int_equal(flow_spec_given(&spec, key), expected == 0);
    if (expected && !strstr(error, "expected"))
        fail_msg("%s=%s: '%s' does not say what was expected", key, value, error);
}

static void each_key_takes_what_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        for (const char *const *value = values[i].good; *value; value++)
            set_alone(values[i].key, *value, 0);
        for (const char *const *value = values[i].bad; *value; value++)
            set_alone(values[i].key, *value, -22);
    }
}

static void each_key_of_sent_flows_is_in_the_table_above(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (size_t k = 0; k < groups[g]->count; k++) {
            const struct flow_key *key = &groups[g]->keys[k];
            bool found = !(key->uses & FLOW_SENT);

            for (size_t i = 0; i < VALUES; i++)
                found = found || strcmp(values[i].key, key->name) == 0;
            if (!found)
                fail_msg("%s is not tested", key->name);
        }
    }
}

static void good(const char *text, struct flow_spec *spec)
{
    char error[FLOW_ERROR_BYTES] = "";

    if (flow_spec_parse(text, FLOW_SENT, spec, error) != 0)
        fail_msg("%s: %s", text, error);
}

static void arrivals(void **state)
{
    struct flow_spec spec;

    (void)state;
    good(HTTP "steps=15/s:10m 0:1s 150/s:2m,arrival=constant,speed=60,scale=2", &spec);
    assert_true(spec.open_loop);
    assert_int_equal(spec.arrival.shape, ARRIVAL_STEP_LIST);
    assert_int_equal(spec.arrival.steps_count, 3);
    assert_true(spec.arrival.steps[0].rate_per_s == 15 && spec.arrival.steps[1].rate_per_s == 0 &&
                spec.arrival.steps[2].rate_per_s == 150);
    assert_int_equal(spec.arrival.steps[2].length_ns, 120000000000);
    assert_true(spec.arrival.speed == 60 && spec.arrival.scale == 2);
    assert_int_equal(spec.arrival.gaps, ARRIVAL_CONSTANT);

    good(HTTP "rate=100/s,sine=50/s:60s", &spec);
    assert_int_equal(spec.arrival.shape, ARRIVAL_SINE);
    assert_true(spec.arrival.amplitude_per_s == 50 && spec.arrival.rate_per_s == 100);
    assert_int_equal(spec.arrival.period_ns, 60000000000);

    good(HTTP "ramp=500/s:30s", &spec);
    assert_int_equal(spec.arrival.shape, ARRIVAL_RAMP);
    assert_true(spec.arrival.rate_per_s == 0 && spec.arrival.peak_per_s == 500);

    good(HTTP "trace=big-spike,repeat=yes", &spec);
    assert_int_equal(spec.arrival.shape, ARRIVAL_TRACE);
    assert_true(spec.arrival.repeats);
    assert_non_null(spec.arrival.trace);
    assert_false(spec.arrival.trace->times);
    assert_int_equal(spec.arrival.trace->count, 720);

    /* Read once however many flows replay it. */
    struct flow_spec other;

    good(HTTP "trace=big-spike", &other);
    assert_ptr_equal(other.arrival.trace, spec.arrival.trace);
}

static void traces_of_files(void **state)
{
    char path[] = "/tmp/spillload-trace-XXXXXX";
    char text[128];
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0.5\n1\n1.25\n", 11), 11);
    close(fd);
    snprintf(text, sizeof(text), HTTP "speed=2,trace=%s", path);
    good(text, &spec);
    assert_true(spec.arrival.trace->times);
    assert_int_equal(spec.arrival.trace->count, 3);
    snprintf(text, sizeof(text), HTTP "scale=2,trace=%s", path);
    assert_true(flow_spec_parse(text, FLOW_SENT, &spec, error) < 0);
    assert_non_null(strstr(error, "scale: this trace tells the time of each request"));
    snprintf(text, sizeof(text), HTTP "arrival=poisson,trace=%s", path);
    assert_true(flow_spec_parse(text, FLOW_SENT, &spec, error) < 0);
    assert_non_null(strstr(error, "arrival: this trace tells the time of each request"));
    unlink(path);
}

static void http_requests(void **state)
{
    struct flow_spec spec;

    (void)state;
    good(HTTPS "rate=1/s,request=80 GET /{file},request=20 PUT /up/{number} uniform:4KiB,files=10,"
               "tenants=100:0.9,header=X-Tenant: {tenant},keep-alive=no,tls-ca=/ca.pem,"
               "server-name=example.org",
         &spec);
    assert_int_equal(spec.http.requests_count, 2);
    assert_int_equal(spec.http.requests[0].weight, 80);
    assert_string_equal(spec.http.requests[0].path, "/{file}");
    assert_false(spec.http.requests[0].has_body);
    assert_string_equal(spec.http.requests[1].method, "PUT");
    assert_true(spec.http.requests[1].has_body);
    assert_int_equal(spec.http.requests[1].body.kind, DISTRIBUTION_UNIFORM);
    assert_int_equal(spec.http.tenants, 100);
    assert_true(spec.http.tenant_zipf == 0.9);
    assert_true(spec.http.tls && spec.http.close_each && !spec.http.tls_unverified);
    assert_string_equal(spec.http.tls_ca, "/ca.pem");
    assert_string_equal(spec.http.server_name, "example.org");

    good("proto=h2c,target=127.0.0.1:80,concurrency=8,streams=4", &spec);
    assert_int_equal(spec.http.version, FLOW_HTTP_2);
    assert_false(spec.http.tls);
    assert_int_equal(spec.http.streams, 4);
    assert_int_equal(spec.http.requests_count, 1);
    assert_string_equal(spec.http.requests[0].method, "GET");

    good("proto=h2,target=127.0.0.1:80,concurrency=8,tls-verify=no", &spec);
    assert_true(spec.http.tls && spec.http.tls_unverified);
}

static void as_many_requests_as_fit(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    flow_spec_init(&spec);
    for (int i = 0; i < FLOW_MAX_REQUESTS; i++)
        assert_int_equal(flow_spec_set(&spec, FLOW_SENT, "request", "1 GET /", error), 0);
    assert_int_equal(spec.http.requests_count, FLOW_MAX_REQUESTS);
    assert_true(flow_spec_set(&spec, FLOW_SENT, "request", "1 GET /", error) < 0);
    assert_non_null(strstr(error, "at most 32"));
}

static void nfs_work(void **state)
{
    struct flow_spec spec;

    (void)state;
    good(NFS "concurrency=1,version=4.1,mix=read:60 write:30 getattr:10,transfer=uniform:64KiB,"
             "stable=no,verify=yes," SET "popularity=hot:20%:80%,depth=2,width=5,size=lognormal:"
             "10000:1.2,set=a/b,set-seed=7",
         &spec);
    assert_int_equal(spec.nfs.version, FLOW_NFS_4_1);
    assert_int_equal(spec.nfs.mix[FLOW_READ], 60);
    assert_int_equal(spec.nfs.mix[FLOW_WRITE], 30);
    assert_int_equal(spec.nfs.mix[FLOW_GETATTR], 10);
    assert_int_equal(spec.nfs.mix[FLOW_LOOKUP], 0);
    assert_int_equal(spec.nfs.transfer.kind, DISTRIBUTION_UNIFORM);
    assert_true(spec.nfs.unstable && spec.nfs.verify && spec.nfs.populate);
    assert_int_equal(spec.set.popularity, FILESET_HOT);
    assert_true(spec.set.hot_files == 0.2 && spec.set.hot_share == 0.8);
    assert_int_equal(spec.set.depth, 2);
    assert_int_equal(spec.set.width, 5);
    assert_int_equal(spec.set.size.kind, DISTRIBUTION_LOGNORMAL);
    assert_string_equal(spec.set.root, "a/b");
    assert_int_equal(spec.set.seed, 7);

    good(NFS "concurrency=1," SET "populate=no", &spec);
    assert_false(spec.nfs.populate);
    assert_int_equal(spec.set.width, 10);
    assert_string_equal(spec.set.root, "set");

    good(NFS "concurrency=1,mix=sfs2008," SET, &spec);
    uint32_t sum = 0;

    for (int i = 0; i < FLOW_OPERATIONS; i++)
        sum += spec.nfs.mix[i];
    assert_int_equal(spec.nfs.mix[FLOW_GETATTR], 26);
    assert_int_equal(sum, 99); /* without READLINK's 1 */
}

static void retries(void **state)
{
    struct flow_spec spec;

    (void)state;
    good(HTTP "rate=1/s", &spec);
    assert_int_equal(spec.retries, 0);
    good(HTTP "rate=1/s,retry=500ms", &spec);
    assert_int_equal(spec.retries, UINT32_MAX);
    assert_int_equal(spec.retry_ns, 500000000);
    good(HTTP "rate=1/s,retries=3,retry-after=yes", &spec);
    assert_int_equal(spec.retries, 3);
    assert_int_equal(spec.retry_ns, 100000000);
    assert_true(spec.retry_after);
    good(HTTP "rate=1/s,seed=7", &spec);
    assert_true(spec.has_seed);
    assert_int_equal(spec.seed, 7);
    good(HTTP "concurrency=1,think=exponential:10ms", &spec);
    assert_int_equal(spec.think.kind, DISTRIBUTION_EXPONENTIAL);
    good(HTTP "concurrency=1,think-distribution=uniform,think=10ms", &spec);
    assert_int_equal(spec.think.kind, DISTRIBUTION_UNIFORM);
    good(HTTP "concurrency=1,think=10ms,think-distribution=uniform", &spec);
    assert_int_equal(spec.think.kind, DISTRIBUTION_UNIFORM);
    assert_int_equal(spec.think.mean, 10000000);
}

static void contradictions_are_told(void **state)
{
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {HTTP "rate=1/s,rate=2/s", "rate is there twice"},
        {HTTP "rate=1/s,steps=1/s:1s", "rate and steps: the steps tell the rates"},
        {HTTP "rate=1/s,trace=big-spike", "rate and trace: the trace tells the rates"},
        {HTTP "steps=1/s:1s,ramp=5/s:1s", "steps and ramp: a flow has one shape"},
        {HTTP "rate=1/s,on=1s,off=1s,sine=5/s:1s", "on and sine: a flow has one shape"},
        {HTTP "concurrency=1,sine=5/s:1s", "sine needs rate"},
        {HTTP "ramp=0:1s", "from 0 to 0 is no load"},
        {HTTP "rate=1/s,speed=2", "speed needs a rate that changes"},
        {HTTP "concurrency=1,scale=2", "scale multiplies a rate"},
        {HTTP "rate=1000000/s,scale=1000", "no more than 100M/s"},
        {HTTP "concurrency=1,arrival=constant", "arrival is for open loop"},
        {HTTP "rate=1/s,repeat=yes", "repeat needs trace"},
        {HTTP "trace=/nowhere/at.all", "trace=/nowhere/at.all: "},
        {HTTP "rate=1/s,pause=1s", "pause is for closed loop"},
        {HTTP "rate=1/s,retry-after=yes", "retry-after needs retry"},
        {HTTP "concurrency=1,think=exponential:1ms,think-distribution=fixed", "expected fixed"},
        {HTTP "rate=1/s,export=/x", "export is for NFS"},
        {NFS "rate=1/s,path=/x", "path is for HTTP"},
        {HTTP "rate=1/s,request=1 GET /,path=/x", "request and path"},
        {HTTP "rate=1/s,request=1 GET /,bytes=5", "request and bytes"},
        {HTTP "rate=1/s,body=5,bytes=5", "bytes and body"},
        {HTTP "rate=1/s,path=/{file}", "{file} needs a file set"},
        {HTTP "rate=1/s,files=5", "files needs {file}"},
        {HTTP "rate=1/s,tenants=5", "tenants needs {tenant}"},
        {HTTP "rate=1/s,tls-verify=no", "tls-verify is for TLS"},
        {HTTPS "rate=1/s,tls-verify=no,tls-ca=x", "tls-verify=no and tls-ca"},
        {HTTP "rate=1/s,streams=5", "streams is for HTTP/2"},
        {"proto=h2c,target=127.0.0.1:80,rate=1/s,keep-alive=no", "keep-alive=no is for HTTP/1.1"},
        {NFS "rate=1/s,op=read,mix=web", "op and mix"},
        {NFS "rate=1/s,bytes=5,transfer=5", "bytes and transfer"},
        {NFS "rate=1/s,transfer=pareto:1.1:1KiB:1GiB", "at most 64MiB"},
        {NFS "rate=1/s,file=x,files=5", "file and files"},
        {NFS "rate=1/s,verify=yes", "verify needs a file set"},
        {NFS "rate=1/s,populate=yes", "populate needs a file set"},
        {NFS "rate=1/s,depth=2", "depth describes a file set"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct flow_spec spec;
        char error[FLOW_ERROR_BYTES] = "";

        if (flow_spec_parse(rows[i].text, FLOW_SENT, &spec, error) == 0)
            fail_msg("%s was taken", rows[i].text);
        if (!strstr(error, rows[i].part))
            fail_msg("%s: '%s' does not say '%s'", rows[i].text, error, rows[i].part);
    }
}

static void keys_fit_protocols_and_can_be_replaced(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    good(NFS "rate=5/s", &spec);
    assert_true(flow_spec_fits(&spec, FLOW_SENT, "export"));
    assert_true(flow_spec_fits(&spec, FLOW_SENT, "rate"));
    assert_false(flow_spec_fits(&spec, FLOW_SENT, "path"));
    assert_false(flow_spec_fits(&spec, FLOW_SENT, "weight"));
    assert_false(flow_spec_fits(&spec, FLOW_SENT, "colour"));
    assert_true(flow_spec_set(&spec, FLOW_SENT, "rate", "7/s", error) < 0);
    assert_int_equal(flow_spec_replace(&spec, FLOW_SENT, "rate", "7/s", error), 0);
    assert_true(spec.arrival.rate_per_s == 7);
    assert_true(flow_spec_replace(&spec, FLOW_SENT, "rate", "x", error) < 0);
}

/* Nothing outside of the text is looked at. */
static void offline_flows_look_nothing_up(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    flow_spec_init(&spec);
    spec.offline = true;
    assert_int_equal(flow_spec_set_all(&spec, FLOW_SENT,
                                       "target=no.such.name.invalid:80,trace=/nowhere/at.all,"
                                       "body=list:/nowhere/at.all",
                                       error),
                     0);
    assert_int_equal(flow_spec_check(&spec, FLOW_SENT, error), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_takes_what_it_should),
        cmocka_unit_test(each_key_of_sent_flows_is_in_the_table_above),
        cmocka_unit_test(arrivals),
        cmocka_unit_test(traces_of_files),
        cmocka_unit_test(http_requests),
        cmocka_unit_test(as_many_requests_as_fit),
        cmocka_unit_test(nfs_work),
        cmocka_unit_test(retries),
        cmocka_unit_test(contradictions_are_told),
        cmocka_unit_test(keys_fit_protocols_and_can_be_replaced),
        cmocka_unit_test(offline_flows_look_nothing_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
