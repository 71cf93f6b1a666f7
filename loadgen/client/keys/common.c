/* SPDX-License-Identifier: Apache-2.0 */
/* What every flow has: name, protocol, target, clients, times, retries. */
#include "loadgen/client/keys/keys.h"

#include <string.h>

#define RETRY_DEFAULT_NS 100000000ULL

static bool set_name(struct flow_spec *spec, const char *value)
{
    return key_text(spec->name, sizeof(spec->name), value);
}

static bool set_protocol(struct flow_spec *spec, const char *value)
{
    static const struct {
        const char *name;
        enum flow_protocol protocol;
        enum flow_http_version version;
        bool tls;
    } protocols[] = {
        {"http", FLOW_HTTP, FLOW_HTTP_1_1, false}, {"https", FLOW_HTTP, FLOW_HTTP_1_1, true},
        {"h2c", FLOW_HTTP, FLOW_HTTP_2, false},    {"h2", FLOW_HTTP, FLOW_HTTP_2, true},
        {"nfs", FLOW_NFS, FLOW_HTTP_1_1, false},
    };

    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        if (strcmp(protocols[i].name, value) != 0)
            continue;
        spec->protocol = protocols[i].protocol;
        spec->http.version = protocols[i].version;
        spec->http.tls = protocols[i].tls;
        return true;
    }
    return false;
}

/* HOST:PORT as far as that can be told without asking anybody. */
static bool looks_like_target(const char *value)
{
    const char *colon = strrchr(value, ':');
    uint64_t port;

    return colon && colon > value && units_parse_count(colon + 1, 0, 65535, &port) == 0;
}

static bool set_target(struct flow_spec *spec, const char *value)
{
    spec->has_target =
        key_text(spec->authority, sizeof(spec->authority), value) &&
        (spec->offline ? looks_like_target(value) : units_parse_address(value, &spec->target) == 0);
    return spec->has_target;
}

static bool set_concurrency(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, FLOW_MAX_CLIENTS, &spec->concurrency);
}

static bool set_connections(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, FLOW_MAX_CLIENTS, &spec->connections);
}

/* think and think-distribution come in any order: the latter is the kind of a plain time. */
static bool set_think(struct flow_spec *spec, const char *value)
{
    enum distribution_kind kind = spec->think.kind;

    if (!key_distribution(spec, value, DISTRIBUTION_NS, &spec->think))
        return false;
    if (flow_spec_given(spec, "think-distribution")) {
        if (spec->think.kind != DISTRIBUTION_FIXED)
            return false;
        spec->think.kind = kind;
    }
    return true;
}

static bool set_think_distribution(struct flow_spec *spec, const char *value)
{
    return spec->think.kind == DISTRIBUTION_FIXED &&
           distribution_parse(value, &spec->think.kind) == 0;
}

static bool set_pause(struct flow_spec *spec, const char *value)
{
    return key_time(value, 0, &spec->pause_ns);
}

static bool set_retry(struct flow_spec *spec, const char *value)
{
    return key_time(value, 1, &spec->retry_ns);
}

static bool set_retries(struct flow_spec *spec, const char *value)
{
    return key_count(value, 1, UINT32_MAX, &spec->retries);
}

static bool set_retry_after(struct flow_spec *spec, const char *value)
{
    return key_flag(value, &spec->retry_after);
}

static bool set_start(struct flow_spec *spec, const char *value)
{
    return key_time(value, 0, &spec->start_ns);
}

static bool set_stop(struct flow_spec *spec, const char *value)
{
    return key_time(value, 1, &spec->stop_ns);
}

static bool set_timeout(struct flow_spec *spec, const char *value)
{
    return key_time(value, 1, &spec->timeout_ns);
}

static bool set_seed(struct flow_spec *spec, const char *value)
{
    spec->has_seed = units_parse_count(value, 0, INT64_MAX, &spec->seed) == 0;
    return spec->has_seed;
}

static int check_retries(struct flow_spec *spec, char *error)
{
    if (flow_spec_given(spec, "retry") && !spec->retries)
        spec->retries = UINT32_MAX;
    if (spec->retry_after && !spec->retries)
        return key_complain(error, "retry-after needs retry=TIME, for refusals that do not say "
                                   "when, or retries=N");
    if (spec->retries && !spec->retry_ns)
        spec->retry_ns = RETRY_DEFAULT_NS;
    return 0;
}

static int check_sent(struct flow_spec *spec, char *error)
{
    if (!spec->has_target)
        return key_complain(error, "target=HOST:PORT is missing (--target gives it to every flow "
                                   "without one)");
    if (spec->concurrency == 0)
        spec->concurrency = 1024;
    if (spec->connections > spec->concurrency)
        spec->connections = spec->concurrency;
    if (spec->connections == 0 && spec->protocol == FLOW_NFS)
        spec->connections = spec->concurrency < 4 ? spec->concurrency : 4;
    return check_retries(spec, error);
}

static int check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    if (!spec->open_loop && spec->concurrency == 0)
        return key_complain(error,
                            "rate=N/s (open loop) or concurrency=N (closed loop) is missing");
    if (spec->open_loop && flow_spec_given(spec, "think"))
        return key_complain(error, "think is for closed loop, rate for open loop");
    if (spec->open_loop && flow_spec_given(spec, "pause"))
        return key_complain(error, "pause is for closed loop; leave it out");
    if (spec->stop_ns && spec->stop_ns <= spec->start_ns)
        return key_complain(error, "stop must be later than start");
    return use == FLOW_SENT ? check_sent(spec, error) : 0;
}

static const struct flow_key keys[] = {
    {"name", FLOW_BOTH, KEY_OF_ALL, false, set_name, "a name of 1 to 31 characters",
     "shown in tables (default: flow1, flow2...)"},
    {"proto", FLOW_SENT, KEY_OF_ALL, false, set_protocol, "http, https, h2, h2c or nfs",
     "http and https are HTTP/1.1, h2 is HTTP/2 over TLS, h2c without (default http)"},
    {"target", FLOW_SENT, KEY_OF_ALL, false, set_target, "HOST:PORT that resolves",
     "where the requests go; required"},
    {"concurrency", FLOW_SENT, KEY_OF_ALL, false, set_concurrency, "a number from 1 to 65000",
     "closed loop: clients. Open loop: cap on requests in flight (default 1024); what comes above "
     "it waits, its latency counts from the intended time"},
    {"concurrency", FLOW_SIMULATED, KEY_OF_ALL, false, set_concurrency, "a number from 1 to 65000",
     "closed loop: clients"},
    {"think", FLOW_BOTH, KEY_OF_ALL, false, set_think,
     "a time, as 10ms, or a distribution of times, as exponential:10ms",
     "closed loop: pause after a reply (default 0)"},
    {"think-distribution", FLOW_BOTH, KEY_OF_ALL, false, set_think_distribution,
     "fixed, exponential, uniform or bimodal, and think a plain time",
     "another way to say think=KIND:TIME (default fixed)"},
    {"pause", FLOW_BOTH, KEY_OF_ALL, false, set_pause, "a time, as 100ms",
     "closed loop: pause after a refusal or an error that is final (default 100ms)"},
    {"retry", FLOW_SENT, KEY_OF_ALL, false, set_retry, "a time above 0, as 500ms",
     "a refused request is sent again after this time; its latency counts from the first intended "
     "time"},
    {"retries", FLOW_SENT, KEY_OF_ALL, false, set_retries, "a number above 0",
     "so many times at most (default: with retry, until it is taken; else none)"},
    {"retry-after", FLOW_SENT, KEY_OF_ALL, false, set_retry_after, "yes or no",
     "wait as long as the refusal says instead, where it does (default no)"},
    {"seed", FLOW_SENT, KEY_OF_ALL, false, set_seed, "a number",
     "of the flow's draws (default: from the run's and the flow's place)"},
    {"start", FLOW_BOTH, KEY_OF_ALL, false, set_start, "a time, as 2s",
     "when the flow begins (default 0)"},
    {"stop", FLOW_BOTH, KEY_OF_ALL, false, set_stop, "a time above 0, as 8s",
     "when the flow ends (default: with the run)"},
    {"timeout", FLOW_SENT, KEY_OF_ALL, false, set_timeout, "a time above 0, as 30s",
     "for one request (default 30s)"},
    {"connections", FLOW_SENT, KEY_OF_ALL, false, set_connections, "a number from 1 to 65000",
     "TCP connections (default: HTTP as many as concurrency needs; NFS 4, never more than "
     "concurrency)"},
};

const struct key_group key_group_common = {"Flow", keys, sizeof(keys) / sizeof(keys[0]), check};
