/* SPDX-License-Identifier: Apache-2.0 */
/* Single values of the configuration: times, sizes, counts, addresses, networks, guesses. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "proxy/config/config_value.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void durations_are_exact(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0s", 0},
        {"1ns", 1},
        {"250us", 250000},
        {"30s", 30000000000},
        {"1.5ms", 1500000},
        {"0.000000001s", 1},
        {"0.1ns", 0},
        {"2m", 120000000000},
        {"24h", 86400000000000},
        {"5124095h", 18446742000000000000u},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        uint64_t ns = 42;

        assert_null(config_parse_duration(good[i].text, &ns));
        assert_int_equal(ns, good[i].ns);
    }
}

static void bad_durations_say_why(void **state)
{
    static const char *const bad[][2] = {
        {"", "does not begin with a number"},
        {"s", "does not begin with a number"},
        {"-1s", "does not begin with a number"},
        {" 1s", "does not begin with a number"},
        {"30", "has no unit of time"},
        {"30 s", "has an unknown unit"},
        {"30S", "has an unknown unit"},
        {"30sec", "has an unknown unit"},
        {"1.s", "has no digit after the point"},
        {"1.0000000000s", "has more than nine digits after the point"},
        {"5124096h", "is too large"},
        {"99999999999999999999s", "is too large"},
        {"1m30s", "has an unknown unit"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        uint64_t ns;
        const char *why = config_parse_duration(bad[i][0], &ns);

        assert_non_null(why);
        assert_string_equal(why, bad[i][1]);
    }
}

static void sizes_are_powers_of_1024(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"512B", 512},       {"8KiB", 8192},     {"8K", 8192},
        {"1.5MiB", 1572864}, {"2G", 2147483648}, {"1TiB", 1099511627776},
    };
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_null(config_parse_size(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    assert_string_equal(config_parse_size("8192", &bytes), "has no unit of size");
    assert_string_equal(config_parse_size("8kB", &bytes), "has an unknown unit");
    assert_string_equal(config_parse_size("16777216TiB", &bytes), "is too large");
}

static void texts_of_numbers_read_back(void **state)
{
    static const uint64_t values[] = {0, 1, 999, 1000, 1024, 60000000000, 90000000000, UINT64_MAX};
    char buf[32];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        uint64_t back = 42;

        assert_null(
            config_parse_duration(config_duration_text(values[i], buf, sizeof(buf)), &back));
        assert_int_equal(back, values[i]);
        assert_null(config_parse_size(config_size_text(values[i], buf, sizeof(buf)), &back));
        assert_int_equal(back, values[i]);
    }
    assert_string_equal(config_duration_text(90000000000, buf, sizeof(buf)), "90s");
    assert_string_equal(config_size_text(65536, buf, sizeof(buf)), "64KiB");
    assert_string_equal(config_duration_text(0, buf, sizeof(buf)), "0s");
}

static void counts_and_switches(void **state)
{
    uint64_t count;
    bool on = false;

    (void)state;
    assert_null(config_parse_count("18446744073709551615", &count));
    assert_int_equal(count, UINT64_MAX);
    assert_string_equal(config_parse_count("18446744073709551616", &count), "is too large");
    assert_string_equal(config_parse_count("1.5", &count), "is not a whole number");
    assert_string_equal(config_parse_count("-1", &count), "is not a whole number");
    assert_string_equal(config_parse_count("", &count), "is empty");
    assert_null(config_parse_bool("Yes", &on));
    assert_true(on);
    assert_null(config_parse_bool("off", &on));
    assert_false(on);
    assert_non_null(config_parse_bool("1", &on));
}

static void addresses_become_endpoints(void **state)
{
    struct config_address address = {.text = "127.0.0.1:80"};
    const struct sockaddr_in *v4;
    const struct sockaddr_in6 *v6;
    const struct sockaddr_un *path;

    (void)state;
    assert_null(config_address_resolve(&address, false, false));
    assert_int_equal(address.endpoint_count, 1);
    v4 = (const void *)&address.endpoints[0].addr;
    assert_int_equal(v4->sin_family, AF_INET);
    assert_int_equal(ntohs(v4->sin_port), 80);
    assert_int_equal(ntohl(v4->sin_addr.s_addr), 0x7f000001);
    assert_true(config_address_is_local(&address));
    free(address.endpoints);

    address = (struct config_address){.text = "[2001:db8::1]:2049"};
    assert_null(config_address_resolve(&address, false, false));
    v6 = (const void *)&address.endpoints[0].addr;
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_int_equal(ntohs(v6->sin6_port), 2049);
    assert_false(config_address_is_local(&address));
    free(address.endpoints);

    address = (struct config_address){.text = "unix:/run/app.sock"};
    assert_null(config_address_resolve(&address, false, false));
    path = (const void *)&address.endpoints[0].addr;
    assert_int_equal(path->sun_family, AF_UNIX);
    assert_string_equal(path->sun_path, "/run/app.sock");
    free(address.endpoints);

    address = (struct config_address){.text = "*:0"};
    assert_null(config_address_resolve(&address, true, false));
    assert_true(address.wildcard);
    assert_int_equal(address.endpoint_count, 2);
    assert_int_equal(address.endpoints[0].addr.ss_family, AF_INET);
    assert_int_equal(address.endpoints[1].addr.ss_family, AF_INET6);
    assert_false(config_address_is_local(&address));
    free(address.endpoints);
}

static void names_wait_for_a_lookup(void **state)
{
    struct config_address address = {.text = "web.example:80"};

    (void)state;
    assert_null(config_address_resolve(&address, false, false));
    assert_int_equal(address.endpoint_count, 0);

    address = (struct config_address){.text = "localhost:80"};
    assert_null(config_address_resolve(&address, false, true));
    assert_true(address.endpoint_count >= 1);
    assert_true(config_address_is_local(&address));
    free(address.endpoints);
}

static void bad_addresses_say_why(void **state)
{
    static const struct {
        const char *text;
        bool bind;
        const char *why;
    } bad[] = {
        {"10.0.0.1", false, "has no port"},
        {"10.0.0.1:", false, "has a port that is not a number"},
        {"10.0.0.1:http", false, "has a port that is not a number"},
        {"10.0.0.1:65536", false, "has a port above 65535"},
        {"10.0.0.1:0", false, "has port 0, which nothing can connect to"},
        {"*:80", false, "is `*`, which nothing can connect to"},
        {":80", true, "has no host (* for all addresses)"},
        {":80", false, "has no host"},
        {"::1:80", true, "is an IPv6 address without brackets ([ADDRESS]:PORT)"},
        {"[::1]", true, "has no port"},
        {"[::1:80", true, "has `[` without `]`"},
        {"[::g]:80", true, "has no valid IPv6 address in its brackets"},
        {"[10.0.0.1]:80", true, "has no valid IPv6 address in its brackets"},
        {"10.0.0.256:80", true, "has a host that is not a valid IPv4 address"},
        {"10.1:80", true, "has a host that is not a valid IPv4 address"},
        {"a b:80", true, "has a host with characters that host names don't have"},
        {"http://a:80", false, "is a URL, not HOST:PORT"},
        {"unix:", true, "is a UNIX socket without a path (unix:/path or unix:./path)"},
    };
    struct config_address_parts parts;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *why = config_parse_address(bad[i].text, bad[i].bind, &parts);

        assert_non_null(why);
        assert_string_equal(why, bad[i].why);
    }
}

static void long_paths_and_hosts_are_refused(void **state)
{
    struct config_address_parts parts;
    char text[400];

    (void)state;
    /* 107 bytes and the NUL fill sun_path. */
    snprintf(text, sizeof(text), "unix:/%0106d", 0);
    assert_null(config_parse_address(text, true, &parts));
    snprintf(text, sizeof(text), "unix:/%0107d", 0);
    assert_non_null(config_parse_address(text, true, &parts));
    snprintf(text, sizeof(text), "a%0254d:80", 0);
    assert_null(config_parse_address(text, true, &parts));
    snprintf(text, sizeof(text), "a%0255d:80", 0);
    assert_non_null(config_parse_address(text, true, &parts));
}

static bool matches(const char *prefix_text, const char *address_text)
{
    struct config_prefix prefix = {.text = prefix_text};
    struct sockaddr_storage addr = {0};

    assert_null(config_parse_prefix(prefix_text, &prefix));
    if (strchr(address_text, ':') != NULL) {
        addr.ss_family = AF_INET6;
        assert_int_equal(
            inet_pton(AF_INET6, address_text, &((struct sockaddr_in6 *)&addr)->sin6_addr), 1);
    } else {
        addr.ss_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, address_text, &((struct sockaddr_in *)&addr)->sin_addr),
                         1);
    }
    return config_prefix_match(&prefix, (const struct sockaddr *)&addr);
}

static void prefixes_match_what_lies_in_them(void **state)
{
    const struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct config_prefix all = {0};

    (void)state;
    assert_true(matches("10.0.0.0/8", "10.255.0.1"));
    assert_false(matches("10.0.0.0/8", "11.0.0.1"));
    assert_true(matches("10.1.128.0/17", "10.1.255.255"));
    assert_false(matches("10.1.128.0/17", "10.1.127.255"));
    assert_true(matches("192.0.2.7", "192.0.2.7"));
    assert_false(matches("192.0.2.7", "192.0.2.6"));
    assert_true(matches("0.0.0.0/0", "8.8.8.8"));
    assert_false(matches("0.0.0.0/0", "2001:db8::1"));
    assert_true(matches("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(matches("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(matches("::/0", "2001:db8::1"));
    assert_null(config_parse_prefix("::/0", &all));
    assert_false(config_prefix_match(&all, (const struct sockaddr *)&path));
}

static void mapped_addresses_are_ipv4(void **state)
{
    (void)state;
    assert_true(matches("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert_false(matches("10.0.0.0/8", "::ffff:11.1.2.3"));
    assert_true(matches("::ffff:10.0.0.0/104", "10.1.2.3"));
    assert_false(matches("::/0", "::ffff:10.1.2.3"));
    assert_false(matches("::/0", "10.1.2.3"));
}

static void bad_prefixes_say_why(void **state)
{
    static const char *const bad[][2] = {
        {"", "is not an IPv4 or IPv6 network"},
        {"/8", "is not an IPv4 or IPv6 network"},
        {"example.com", "is not an IPv4 or IPv6 network"},
        {"10.0.0.0/", "has a prefix length that is not a number"},
        {"10.0.0.0/x", "has a prefix length that is not a number"},
        {"10.0.0.0/33", "has a prefix length above 32"},
        {"::/129", "has a prefix length above 128"},
        {"10.0.0.1/8", "has bits set after its prefix length"},
        {"2001:db8::1/64", "has bits set after its prefix length"},
    };
    struct config_prefix prefix;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *why = config_parse_prefix(bad[i][0], &prefix);

        assert_non_null(why);
        assert_string_equal(why, bad[i][1]);
    }
}

static const char *nth(const void *words, size_t index)
{
    return ((const char *const *)words)[index];
}

static void slips_are_guessed(void **state)
{
    static const char *const words[] = {"listeners", "pools", "log", "workers", "pid-file"};
    static const char *const guesses[][2] = {
        {"listener", "listeners"}, {"Listeners", "listeners"}, {"lsiteners", "listeners"},
        {"pool", "pools"},         {"pid_file", "pid-file"},   {"wrokers", "workers"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(guesses); i++) {
        const char *guess = config_suggest(guesses[i][0], COUNT_OF(words), nth, words);

        assert_non_null(guess);
        assert_string_equal(guess, guesses[i][1]);
    }
    assert_null(config_suggest("frontend", COUNT_OF(words), nth, words));
    assert_null(config_suggest("x", COUNT_OF(words), nth, words));
    assert_null(config_suggest("", COUNT_OF(words), nth, words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_exact),
        cmocka_unit_test(bad_durations_say_why),
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(texts_of_numbers_read_back),
        cmocka_unit_test(counts_and_switches),
        cmocka_unit_test(addresses_become_endpoints),
        cmocka_unit_test(names_wait_for_a_lookup),
        cmocka_unit_test(bad_addresses_say_why),
        cmocka_unit_test(long_paths_and_hosts_are_refused),
        cmocka_unit_test(prefixes_match_what_lies_in_them),
        cmocka_unit_test(mapped_addresses_are_ipv4),
        cmocka_unit_test(bad_prefixes_say_why),
        cmocka_unit_test(slips_are_guessed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
