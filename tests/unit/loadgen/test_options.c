/* SPDX-License-Identifier: Apache-2.0 */
/* Values with units and the --flow option: what is taken, and what is said about the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loadgen/base/units.h"
#include "loadgen/client/flow_spec.h"

static void durations(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint64_t value;
    } rows[] = {
        {"0", 0, 0},
        {"5ns", 0, 5},
        {"250us", 0, 250000},
        {"1.5ms", 0, 1500000},
        {"2s", 0, 2000000000},
        {"3m", 0, 180000000000},
        {"1h", 0, 3600000000000},
        {"5", -22, 0},
        {"", -22, 0},
        {"ms", -22, 0},
        {"-1s", -22, 0},
        {"1 s", -22, 0},
        {"1sec", -22, 0},
        {"1.2.3s", -22, 0},
        {".5s", -22, 0},
        {"1e3s", -22, 0},
        {"9999999h", -34, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value = 77;

        assert_int_equal(units_parse_duration_ns(rows[i].text, &value), rows[i].result);
        assert_int_equal(value, rows[i].result ? 77 : rows[i].value);
    }
}

static void sizes_rates_and_counts(void **state)
{
    uint64_t value = 0;
    double rate = 0;

    (void)state;
    assert_int_equal(units_parse_bytes("4096", &value), 0);
    assert_int_equal(value, 4096);
    assert_int_equal(units_parse_bytes("64KiB", &value), 0);
    assert_int_equal(value, 65536);
    assert_int_equal(units_parse_bytes("2G", &value), 0);
    assert_int_equal(value, 2147483648);
    assert_true(units_parse_bytes("1kb", &value) < 0);
    assert_int_equal(units_parse_rate_per_s("120/s", &rate), 0);
    assert_true(rate == 120);
    assert_int_equal(units_parse_rate_per_s("30/m", &rate), 0);
    assert_true(rate == 0.5);
    assert_int_equal(units_parse_rate_per_s("7", &rate), 0);
    assert_true(units_parse_rate_per_s("0/s", &rate) < 0);
    assert_true(units_parse_rate_per_s("5/d", &rate) < 0);
    assert_int_equal(units_parse_count("10", 1, 10, &value), 0);
    assert_true(units_parse_count("11", 1, 10, &value) < 0);
    assert_true(units_parse_count("0", 1, 10, &value) < 0);
    assert_true(units_parse_count("99999999999999999999", 0, UINT64_MAX, &value) < 0);
    assert_true(units_parse_count("+1", 0, 10, &value) < 0);
    assert_true(units_parse_count("1x", 0, 10, &value) < 0);
}

static void addresses_round_trip(void **state)
{
    static const char *const good[] = {"127.0.0.1:80", "[::1]:8080", "0.0.0.0:0"};
    static const char *const bad[] = {"",       "127.0.0.1",     "127.0.0.1:", ":80",
                                      "::1:80", "1.2.3.4:99999", "[::1]",      "1.2.3.4:http"};
    struct units_address address;
    char text[UNITS_ADDRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(units_parse_address(good[i], &address), 0);
        assert_string_equal(units_format_address((void *)&address.address, text), good[i]);
    }
    assert_int_equal(units_parse_address("*:80", &address), 0);
    assert_string_equal(units_format_address((void *)&address.address, text), "0.0.0.0:80");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_true(units_parse_address(bad[i], &address) < 0);
}

static void times_are_shown_with_three_digits(void **state)
{
    char text[24];

    (void)state;
    assert_string_equal(units_format_ns(1234, text, sizeof(text)), "1.23us");
    assert_string_equal(units_format_ns(850000, text, sizeof(text)), "850us");
    assert_string_equal(units_format_ns(12340000, text, sizeof(text)), "12.3ms");
    assert_string_equal(units_format_ns(999700, text, sizeof(text)), "1.00ms");
    assert_string_equal(units_format_ns(1.2e9, text, sizeof(text)), "1.20s");
}

static void a_full_http_flow(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    assert_int_equal(
        flow_spec_parse("name=gold,proto=http,target=127.0.0.1:8080,rate=120/s,arrival=constant,"
                        "on=5s,off=1s,header=X-Flow:steady,header=Accept: a\\,b,method=PUT,"
                        "path=/x?bytes=9,bytes=64KiB,concurrency=64,timeout=2s,start=1s,stop=9s",
                        FLOW_SENT, &spec, error),
        0);
    assert_string_equal(spec.name, "gold");
    assert_int_equal(spec.protocol, FLOW_HTTP);
    assert_true(spec.open_loop);
    assert_true(spec.arrival.rate_per_s == 120);
    assert_int_equal(spec.arrival.gaps, ARRIVAL_CONSTANT);
    assert_int_equal(spec.arrival.on_ns, 5000000000);
    assert_int_equal(spec.arrival.off_ns, 1000000000);
    assert_string_equal(spec.http.headers, "X-Flow: steady\r\nAccept: a,b\r\n");
    assert_false(spec.http.has_host);
    assert_string_equal(spec.http.requests[0].method, "PUT");
    assert_string_equal(spec.http.requests[0].path, "/x?bytes=9");
    assert_int_equal(spec.http.requests[0].body.mean, 65536);
    assert_int_equal(spec.concurrency, 64);
    assert_int_equal(spec.connections, 0);
    assert_int_equal(spec.timeout_ns, 2000000000);
    assert_int_equal(spec.start_ns, 1000000000);
    assert_int_equal(spec.stop_ns, 9000000000);
}

static void an_nfs_flow_and_its_defaults(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    assert_int_equal(flow_spec_parse("proto=nfs,target=127.0.0.1:2049,concurrency=2,uid=1002,"
                                     "op=write,order=sequential,think=5ms,export=/vol,file=f",
                                     FLOW_SENT, &spec, error),
                     0);
    assert_false(spec.open_loop);
    assert_int_equal(spec.nfs.mix[FLOW_WRITE], 1);
    assert_true(spec.nfs.sequential);
    assert_int_equal(spec.nfs.transfer.mean, 4096);
    assert_int_equal(spec.connections, 2);
    assert_int_equal(spec.nfs.uid, 1002);
    assert_int_equal(spec.think.mean, 5000000);
    assert_string_equal(spec.nfs.export_path, "/vol");
    assert_string_equal(spec.nfs.file, "f");
    assert_int_equal(spec.timeout_ns, 30000000000);
}

static void a_simulated_flow_and_its_defaults(void **state)
{
    struct flow_spec spec;
    char error[FLOW_ERROR_BYTES] = "";

    (void)state;
    assert_int_equal(flow_spec_parse("name=g,weight=3,cost=7,rate=120/s,on=10s,off=10s,"
                                     "deadline=10ms,reservation=50/s,limit=100/s,burst=8,"
                                     "order=sequential",
                                     FLOW_SIMULATED, &spec, error),
                     0);
    assert_int_equal(spec.weight, 3);
    assert_int_equal(spec.cost, 7);
    assert_int_equal(spec.deadline_ns, 10000000);
    assert_int_equal(spec.reservation_per_s, 50);
    assert_int_equal(spec.limit_per_s, 100);
    assert_int_equal(spec.burst, 8);
    assert_int_equal(spec.arrival.off_ns, 10000000000);
    assert_true(spec.sequential);

    assert_int_equal(flow_spec_parse("concurrency=5,think=1ms", FLOW_SIMULATED, &spec, error), 0);
    assert_int_equal(spec.concurrency, 5);
    assert_int_equal(spec.weight, 1);
    assert_int_equal(spec.cost, 1);
    assert_int_equal(spec.deadline_ns, 0);
    assert_int_equal(spec.limit_per_s, 0);
}

static void wrong_flows_say_what_is_wrong(void **state)
{
    static const struct {
        enum flow_use use;
        const char *text;
        const char *part; /* of the message */
    } rows[] = {
        {FLOW_SENT, "rate=1/s", "target=HOST:PORT is missing"},
        {FLOW_SENT, "target=127.0.0.1:1", "rate=N/s (open loop) or concurrency=N"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,colour=red", "unknown key 'colour'"},
        {FLOW_SENT, "target=127.0.0.1:1,rate", "'rate': expected key=value"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=fast", "rate=fast: expected a rate"},
        {FLOW_SENT, "target=127.0.0.1,rate=1/s", "target=127.0.0.1: expected HOST:PORT"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,proto=smb",
         "expected http, https, h2, h2c or nfs"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,on=1s", "on and off go together"},
        {FLOW_SENT, "target=127.0.0.1:1,concurrency=1,on=1s,off=1s", "need rate"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,think=1s", "think is for closed loop"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,start=5s,stop=5s", "stop must be later"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,header=novalue", "expected NAME:VALUE"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,header=A b:c", "expected NAME:VALUE"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,header=A:b\r\nC: d", "expected NAME:VALUE"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,path=x", "expected a path"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,method=get", "expected a method"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,op=rename", "expected read, write"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,concurrency=0", "expected a number from 1"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,proto=nfs,bytes=1GiB", "at most 64MiB"},
        {FLOW_SENT, "target=127.0.0.1:1,rate=1/s,weight=2",
         "weight is for flows that are simulated"},
        {FLOW_SIMULATED, "target=127.0.0.1:1,rate=1/s", "target is for flows that are sent"},
        {FLOW_SIMULATED, "rate=1/s,weight=0", "weight=0: expected a number from 1"},
        {FLOW_SIMULATED, "rate=1/s,deadline=0", "deadline=0: expected a time above 0"},
        {FLOW_SIMULATED, "rate=1/s,limit=0.5/s", "limit=0.5/s: expected a whole number"},
        {FLOW_SIMULATED, "rate=1/s,burst=5", "burst needs limit"},
        {FLOW_SIMULATED, "rate=1/s,concurrency=5", "concurrency is for closed loop"},
        {FLOW_SIMULATED, "name=f", "rate=N/s (open loop) or concurrency=N"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct flow_spec spec;
        char error[FLOW_ERROR_BYTES] = "";

        assert_true(flow_spec_parse(rows[i].text, rows[i].use, &spec, error) < 0);
        if (!strstr(error, rows[i].part))
            fail_msg("%s: '%s' does not say '%s'", rows[i].text, error, rows[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(sizes_rates_and_counts),
        cmocka_unit_test(addresses_round_trip),
        cmocka_unit_test(times_are_shown_with_three_digits),
        cmocka_unit_test(a_full_http_flow),
        cmocka_unit_test(an_nfs_flow_and_its_defaults),
        cmocka_unit_test(a_simulated_flow_and_its_defaults),
        cmocka_unit_test(wrong_flows_say_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
