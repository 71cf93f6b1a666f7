/* SPDX-License-Identifier: Apache-2.0 */
/* KIND,key=value...: what is read, and what is refused with which words. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/faults/fault_spec.h"

static struct fault_spec parse(const char *text)
{
    struct fault_spec spec;
    char error[FAULT_ERROR_BYTES] = "";

    if (fault_spec_parse(text, &spec, error) != 0)
        fail_msg("%s: %s", text, error);
    return spec;
}

static void test_defaults(void **state)
{
    struct fault_spec spec = parse("cpu,pid=4711");

    (void)state;
    assert_int_equal(spec.kind, FAULT_CPU);
    assert_int_equal(spec.pid, 4711);
    assert_int_equal(spec.at_ns, 0);
    assert_int_equal(spec.for_ns, 500000000);
    assert_int_equal(spec.times, 1);
    assert_true(spec.quota > 0.0999 && spec.quota < 0.1001);
    assert_int_equal(spec.means, FAULT_MEANS_AUTO);
    assert_false(spec.children);
    assert_int_equal(parse("kill,pid=2").for_ns, 0);
    assert_int_equal(parse("kill,pid=2").signal, SIGKILL);
    assert_string_equal(parse("network,namespace=n,loss=1%").device, "lo");
}

static void test_times(void **state)
{
    struct fault_spec spec = parse("pause,pid=1,at=2s,for=300ms,every=2s");

    (void)state;
    assert_int_equal(spec.at_ns, 2000000000);
    assert_int_equal(spec.for_ns, 300000000);
    assert_int_equal(spec.every_ns, 2000000000);
    assert_int_equal(spec.times, 0);
    assert_int_equal(parse("pause,pid=1,every=2s,times=7").times, 7);
}

static void test_memory_keys(void **state)
{
    struct fault_spec spec = parse("memory,threads=3,bytes=4MiB,cpus=0-2+5");

    (void)state;
    assert_int_equal(spec.threads, 3);
    assert_int_equal(spec.bytes, 4194304);
    assert_int_equal(CPU_COUNT(&spec.cpus), 4);
    assert_true(CPU_ISSET(2, &spec.cpus) && CPU_ISSET(5, &spec.cpus));
    assert_false(CPU_ISSET(3, &spec.cpus));
}

static void test_network_keys(void **state)
{
    struct fault_spec spec = parse("network,namespace=farm,device=veth0,delay=10ms,jitter=2ms");

    (void)state;
    assert_string_equal(spec.network, "/run/netns/farm");
    assert_string_equal(spec.device, "veth0");
    assert_int_equal(spec.delay_ns, 10000000);
    assert_int_equal(spec.jitter_ns, 2000000);
    assert_string_equal(parse("network,namespace=/proc/9/ns/net,loss=0.5%").network,
                        "/proc/9/ns/net");
    assert_true(parse("network,namespace=n,loss=0.5%").loss < 0.00501);
}

static void test_restart_keeps_its_commas(void **state)
{
    struct fault_spec spec = parse("kill,pid=9,signal=TERM,restart=run a\\,b,for=1s");

    (void)state;
    assert_string_equal(spec.restart, "run a,b");
    assert_int_equal(spec.signal, SIGTERM);
    assert_int_equal(spec.for_ns, 1000000000);
    fault_spec_fini(&spec);
    assert_null(spec.restart);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } wrong[] = {
        {"", "no kind"},
        {"earthquake", "no kind"},
        {"pause", "pid= is needed"},
        {"pause,pid=0", "pid=0"},
        {"pause,pid=x", "the number of a process"},
        {"pause,pid", "expected key=value"},
        {"pause,pid=1,quota=3%", "pause has no key 'quota'"},
        {"pause,pid=1,for=0", "at least 1ms"},
        {"pause,pid=1,for=2s,every=2s", "every= must be longer"},
        {"pause,pid=1,times=2", "times= needs every="},
        {"kill,pid=1,every=2s", "needs restart="},
        {"kill,pid=1,restart=", "a command"},
        {"kill,pid=1,restart=a\nb", "in one line"},
        {"kill,pid=1,signal=9", "KILL, TERM"},
        {"cpu,pid=1,quota=10", "per cent"},
        {"cpu,pid=1,quota=0%", "per cent"},
        {"cpu,pid=1,quota=100%,means=duty", "below 100%"},
        {"cpu,pid=1,quota=1.1.1%", "per cent"},
        {"memory,threads=0", "1 to 256"},
        {"memory,bytes=1KiB", "from 1MiB"},
        {"memory,cpus=3-1", "ranges"},
        {"memory,cpus=1+", "ranges"},
        {"memory,cpus=", "ranges"},
        {"memory,cpus=99999", "ranges"},
        {"network,delay=1ms", "namespace= is needed"},
        {"network,namespace=..,delay=1ms", "ip-netns"},
        {"network,namespace=n", "delay= or loss="},
        {"network,namespace=n,delay=1ms,jitter=2ms", "jitter="},
        {"network,namespace=n,loss=101%", "100%"},
        {"network,namespace=n,device=-x,loss=1%", "a network device"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct fault_spec spec;
        char error[FAULT_ERROR_BYTES] = "";

        assert_int_equal(fault_spec_parse(wrong[i].text, &spec, error), -EINVAL);
        if (!strstr(error, wrong[i].says))
            fail_msg("%s: '%s' does not say '%s'", wrong[i].text, error, wrong[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_memory_keys),
        cmocka_unit_test(test_network_keys),
        cmocka_unit_test(test_restart_keeps_its_commas),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
