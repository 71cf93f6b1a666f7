/* SPDX-License-Identifier: Apache-2.0 */
/* The --flow option: one table of keys is parser and help. */
#include "loadgen/client/flow_spec.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/nfs3.h"

#define MAX_COST       1000000U
#define MAX_RATE_PER_S 1e8 /* gaps that the clock's nanoseconds can still tell apart */
#define MAX_WHOLE_RATE 1e9
#define BOTH           (FLOW_SENT | FLOW_SIMULATED)

static const char *const operation_names[FLOW_OPERATIONS] = {
    [FLOW_READ] = "read",       [FLOW_WRITE] = "write",   [FLOW_GETATTR] = "getattr",
    [FLOW_LOOKUP] = "lookup",   [FLOW_ACCESS] = "access", [FLOW_SETATTR] = "setattr",
    [FLOW_READDIR] = "readdir", [FLOW_CREATE] = "create", [FLOW_REMOVE] = "remove",
    [FLOW_COMMIT] = "commit",   [FLOW_FSSTAT] = "fsstat",
};

const char *flow_operation_name(enum flow_operation operation)
{
    return operation_names[operation];
}

/* ---------------------------------------------------------------- setters: true when it is fine */

static bool copy_text(char *to, size_t size, const char *value)
{
    size_t length = strlen(value);

    if (length == 0 || length >= size)
        return false;
    for (const char *p = value; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    }
    memcpy(to, value, length + 1);
    return true;
}

static bool set_count(const char *value, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t number;

    if (units_parse_count(value, least, most, &number) != 0)
        return false;
    *out = (uint32_t)number;
    return true;
}

static bool set_name(struct flow_spec *spec, const char *value)
{
    return copy_text(spec->name, sizeof(spec->name), value);
}

static bool set_protocol(struct flow_spec *spec, const char *value)
{
    spec->protocol = strcmp(value, "nfs") == 0 ? FLOW_NFS : FLOW_HTTP;
    return strcmp(value, "nfs") == 0 || strcmp(value, "http") == 0;
}

static bool set_target(struct flow_spec *spec, const char *value)
{
    spec->has_target = copy_text(spec->authority, sizeof(spec->authority), value) &&
                       units_parse_address(value, &spec->target) == 0;
    return spec->has_target;
}

static bool set_rate(struct flow_spec *spec, const char *value)
{
    spec->open_loop = true;
    return units_parse_rate_per_s(value, &spec->arrival.rate_per_s) == 0 &&
           spec->arrival.rate_per_s <= MAX_RATE_PER_S;
}

static bool set_arrival(struct flow_spec *spec, const char *value)
{
    spec->arrival.gaps = strcmp(value, "constant") == 0 ? ARRIVAL_CONSTANT : ARRIVAL_POISSON;
    return strcmp(value, "constant") == 0 || strcmp(value, "poisson") == 0;
}

static bool set_on(struct flow_spec *spec, const char *value)
{
    spec->arrival.shape = ARRIVAL_ON_OFF;
    return units_parse_duration_ns(value, &spec->arrival.on_ns) == 0 && spec->arrival.on_ns > 0;
}

static bool set_off(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->arrival.off_ns) == 0;
}

static bool set_concurrency(struct flow_spec *spec, const char *value)
{
    return set_count(value, 1, FLOW_MAX_CLIENTS, &spec->concurrency);
}

static bool set_think(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->think.mean) == 0;
}

static bool set_think_distribution(struct flow_spec *spec, const char *value)
{
    return distribution_parse(value, &spec->think.kind) == 0;
}

static bool set_pause(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->pause_ns) == 0;
}

static bool set_start(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->start_ns) == 0;
}

static bool set_stop(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->stop_ns) == 0 && spec->stop_ns > 0;
}

static bool set_timeout(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->timeout_ns) == 0 && spec->timeout_ns > 0;
}

static bool set_connections(struct flow_spec *spec, const char *value)
{
    return set_count(value, 1, FLOW_MAX_CLIENTS, &spec->connections);
}

static bool set_bytes(struct flow_spec *spec, const char *value)
{
    uint64_t bytes;

    if (units_parse_bytes(value, &bytes) != 0)
        return false;
    spec->http.requests[0].has_body = bytes > 0;
    spec->http.requests[0].body = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = bytes};
    spec->nfs.transfer = spec->http.requests[0].body;
    return true;
}

static bool set_method(struct flow_spec *spec, const char *value)
{
    static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return copy_text(spec->http.requests[0].method, sizeof(spec->http.requests[0].method), value) &&
           strspn(value, token) == strlen(value) && strcmp(value, "CONNECT") != 0;
}

static bool set_path(struct flow_spec *spec, const char *value)
{
    return value[0] == '/' && !strchr(value, ' ') &&
           copy_text(spec->http.requests[0].path, sizeof(spec->http.requests[0].path), value);
}

static bool set_header(struct flow_spec *spec, const char *value)
{
    const char *colon = strchr(value, ':');
    size_t used = strlen(spec->http.headers);
    char checked[FLOW_HEADERS_BYTES];

    if (!colon || colon == value || memchr(value, ' ', (size_t)(colon - value)) ||
        !copy_text(checked, sizeof(checked), value))
        return false;
    size_t name = (size_t)(colon - value);

    for (colon++; *colon == ' '; colon++)
        ;
    int length = snprintf(spec->http.headers + used, sizeof(spec->http.headers) - used,
                          "%.*s: %s\r\n", (int)name, value, colon);

    if (name == 4 && strncasecmp(value, "host", 4) == 0)
        spec->http.has_host = true;
    return used + (size_t)length < sizeof(spec->http.headers);
}

static bool set_operation(struct flow_spec *spec, const char *value)
{
    for (int i = 0; i < FLOW_OPERATIONS; i++) {
        if (strcmp(value, operation_names[i]) == 0) {
            memset(spec->nfs.mix, 0, sizeof(spec->nfs.mix));
            spec->nfs.mix[i] = 1;
            return true;
        }
    }
    return false;
}

static bool set_order(struct flow_spec *spec, const char *value)
{
    spec->sequential = spec->nfs.sequential = strcmp(value, "sequential") == 0;
    return spec->sequential || strcmp(value, "random") == 0;
}

static bool set_export(struct flow_spec *spec, const char *value)
{
    return value[0] == '/' &&
           copy_text(spec->nfs.export_path, sizeof(spec->nfs.export_path), value);
}

static bool set_file(struct flow_spec *spec, const char *value)
{
    return !strchr(value, '/') && copy_text(spec->nfs.file, sizeof(spec->nfs.file), value);
}

static bool set_uid(struct flow_spec *spec, const char *value)
{
    return set_count(value, 0, UINT32_MAX, &spec->nfs.uid);
}

static bool set_gid(struct flow_spec *spec, const char *value)
{
    return set_count(value, 0, UINT32_MAX, &spec->nfs.gid);
}

static bool set_weight(struct flow_spec *spec, const char *value)
{
    return set_count(value, 1, FLOW_MAX_WEIGHT, &spec->weight);
}

static bool set_cost(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 1, MAX_COST, &spec->cost) == 0;
}

static bool set_deadline(struct flow_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->deadline_ns) == 0 && spec->deadline_ns > 0;
}

static bool set_whole_rate(const char *value, uint64_t *out)
{
    double rate;

    if (units_parse_rate_per_s(value, &rate) != 0 || rate < 1 || rate > MAX_WHOLE_RATE ||
        rate != floor(rate))
        return false;
    *out = (uint64_t)rate;
    return true;
}

static bool set_reservation(struct flow_spec *spec, const char *value)
{
    return set_whole_rate(value, &spec->reservation_per_s);
}

static bool set_limit(struct flow_spec *spec, const char *value)
{
    return set_whole_rate(value, &spec->limit_per_s);
}

static bool set_burst(struct flow_spec *spec, const char *value)
{
    return units_parse_count(value, 0, MAX_COST, &spec->burst) == 0;
}

/* A name is there twice where it means something else in the other use. */
struct key {
    const char *name;
    int uses; /* of enum flow_use */
    bool (*set)(struct flow_spec *spec, const char *value);
    const char *expected;
    const char *help;
};

static const struct key keys[] = {
    {"name", BOTH, set_name, "a name of 1 to 31 characters",
     "shown in tables (default: flow1, flow2...)"},
    {"proto", FLOW_SENT, set_protocol, "http or nfs", "default http"},
    {"target", FLOW_SENT, set_target, "HOST:PORT that resolves", "where the requests go; required"},
    {"rate", BOTH, set_rate, "a rate above 0 and up to 100M/s, as 120/s",
     "open loop at this rate (while on)"},
    {"arrival", BOTH, set_arrival, "poisson or constant",
     "gaps between requests (default poisson)"},
    {"on", BOTH, set_on, "a time above 0, as 5s", "length of ON phases; needs off"},
    {"off", BOTH, set_off, "a time, as 5s", "length of OFF phases; needs on"},
    {"concurrency", FLOW_SENT, set_concurrency, "a number from 1 to 65000",
     "closed loop: clients. Open loop: cap on requests in flight (default 1024); what comes above "
     "it waits, its latency counts from the intended time"},
    {"concurrency", FLOW_SIMULATED, set_concurrency, "a number from 1 to 65000",
     "closed loop: clients"},
    {"think", BOTH, set_think, "a time, as 10ms",
     "closed loop: mean pause after a reply (default 0)"},
    {"think-distribution", BOTH, set_think_distribution, "fixed, exponential, uniform or bimodal",
     "default fixed"},
    {"pause", BOTH, set_pause, "a time, as 100ms",
     "closed loop: pause after a refusal or an error (default 100ms)"},
    {"start", BOTH, set_start, "a time, as 2s", "when the flow begins (default 0)"},
    {"stop", BOTH, set_stop, "a time above 0, as 8s", "when the flow ends (default: with the run)"},
    {"timeout", FLOW_SENT, set_timeout, "a time above 0, as 30s", "for one request (default 30s)"},
    {"connections", FLOW_SENT, set_connections, "a number from 1 to 65000",
     "TCP connections (default: HTTP up to concurrency; NFS 4, never more than concurrency)"},
    {"bytes", FLOW_SENT, set_bytes, "a size, as 4096 or 64KiB",
     "HTTP: body sent (default 0). NFS: size of a READ or WRITE (default 4096)"},
    {"method", FLOW_SENT, set_method, "a method in capitals", "HTTP: default GET"},
    {"path", FLOW_SENT, set_path, "a path that begins with /", "HTTP: request target (default /)"},
    {"header", FLOW_SENT, set_header, "NAME:VALUE", "HTTP: an extra field; may be repeated"},
    {"op", FLOW_SENT, set_operation, "read, write, getattr, lookup or access", "NFS: default read"},
    {"order", FLOW_SENT, set_order, "random or sequential",
     "NFS: offsets of READ, WRITE (default random)"},
    {"order", FLOW_SIMULATED, set_order, "random or sequential",
     "blocks on the disks (default random)"},
    {"export", FLOW_SENT, set_export, "an absolute path",
     "NFS: mounted directory (default /export)"},
    {"file", FLOW_SENT, set_file, "a name without /", "NFS: file in it (default data)"},
    {"uid", FLOW_SENT, set_uid, "a number", "NFS: AUTH_SYS user (default 0)"},
    {"gid", FLOW_SENT, set_gid, "a number", "NFS: AUTH_SYS group (default 0)"},
    {"weight", FLOW_SIMULATED, set_weight, "a number from 1 to 1000000",
     "its share is its weight over those of the flows with requests waiting (default 1)"},
    {"cost", FLOW_SIMULATED, set_cost, "a number from 1 to 1000000",
     "work of a request: charged, and times the service time (default 1)"},
    {"deadline", FLOW_SIMULATED, set_deadline, "a time above 0, as 10ms",
     "edf: response-time target (default: the arrival is the deadline)"},
    {"reservation", FLOW_SIMULATED, set_reservation, "a whole number per second, as 100/s",
     "mclock: work it gets before all shares (default none)"},
    {"limit", FLOW_SIMULATED, set_limit, "a whole number per second, as 100/s",
     "mclock, leaky-bucket: work at most (default none)"},
    {"burst", FLOW_SIMULATED, set_burst, "a number from 0 to 1000000",
     "work above the limit that may come at once (default 0)"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

void flow_spec_help(FILE *out, enum flow_use use)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].uses & use)
            fprintf(out, "  %-19s %s\n", keys[i].name, keys[i].help);
    }
}

/* ---------------------------------------------------------------- the whole option */

/* The next "key=value" of a comma-separated list, with \, turned into a comma; false at its end. */
static bool next_item(const char **text, char *item, size_t size)
{
    size_t length = 0;
    const char *p = *text;

    if (*p == '\0')
        return false;
    for (; *p && *p != ','; p++) {
        if (p[0] == '\\' && p[1] == ',')
            p++;
        if (length + 1 < size)
            item[length++] = *p;
    }
    item[length] = '\0';
    *text = *p ? p + 1 : p;
    return true;
}

int flow_spec_set(struct flow_spec *spec, enum flow_use use, const char *key, const char *value,
                  char error[FLOW_ERROR_BYTES])
{
    bool other_use = false;

    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, key) != 0)
            continue;
        if (!(keys[i].uses & use)) {
            other_use = true;
            continue;
        }
        if (keys[i].set(spec, value))
            return 0;
        snprintf(error, FLOW_ERROR_BYTES, "%.32s=%.64s: expected %s", key, value, keys[i].expected);
        return -EINVAL;
    }
    if (other_use) {
        snprintf(error, FLOW_ERROR_BYTES, "%.32s is for flows that are %s; leave it out", key,
                 use == FLOW_SENT ? "simulated (spillsim)" : "sent (spillload)");
        return -EINVAL;
    }
    snprintf(error, FLOW_ERROR_BYTES, "unknown key '%.64s'; --help lists the keys", key);
    return -EINVAL;
}

static int complain(char *error, const char *text)
{
    snprintf(error, FLOW_ERROR_BYTES, "%s", text);
    return -EINVAL;
}

static int check_sent(struct flow_spec *spec, char *error)
{
    if (!spec->has_target)
        return complain(error, "target=HOST:PORT is missing");
    if (spec->protocol == FLOW_NFS) {
        if (spec->nfs.transfer.mean == 0)
            spec->nfs.transfer = (struct distribution){.kind = DISTRIBUTION_FIXED, .mean = 4096};
        if (spec->nfs.transfer.mean > (64U << 20))
            return complain(error, "bytes: at most 64MiB in one NFS operation");
        if (strlen(spec->nfs.export_path) > MOUNT_PATH_MAX_BYTES ||
            strlen(spec->nfs.file) > NFS3_NAME_MAX_BYTES)
            return complain(error, "export or file: too long");
    }
    if (spec->concurrency == 0)
        spec->concurrency = 1024;
    if (spec->connections > spec->concurrency)
        spec->connections = spec->concurrency;
    if (spec->connections == 0 && spec->protocol == FLOW_NFS)
        spec->connections = spec->concurrency < 4 ? spec->concurrency : 4;
    return 0;
}

static int check_simulated(const struct flow_spec *spec, char *error)
{
    if (spec->open_loop && spec->concurrency)
        return complain(error, "concurrency is for closed loop, rate for open loop: a simulated "
                               "open loop has no cap");
    if (spec->burst && !spec->limit_per_s)
        return complain(error, "burst needs limit=N/s");
    return 0;
}

int flow_spec_check(struct flow_spec *spec, enum flow_use use, char error[FLOW_ERROR_BYTES])
{
    if (!spec->open_loop && spec->concurrency == 0)
        return complain(error, "rate=N/s (open loop) or concurrency=N (closed loop) is missing");
    if ((spec->arrival.on_ns == 0) != (spec->arrival.off_ns == 0))
        return complain(error, "on and off go together");
    if (!spec->open_loop && spec->arrival.on_ns)
        return complain(error, "on and off need rate=N/s");
    if (spec->open_loop && spec->think.mean)
        return complain(error, "think is for closed loop, rate for open loop");
    if (spec->stop_ns && spec->stop_ns <= spec->start_ns)
        return complain(error, "stop must be later than start");
    return use == FLOW_SENT ? check_sent(spec, error) : check_simulated(spec, error);
}

static int set_item(struct flow_spec *spec, enum flow_use use, char *item, char *error)
{
    char *equals = strchr(item, '=');

    if (!equals) {
        snprintf(error, FLOW_ERROR_BYTES, "'%.64s': expected key=value", item);
        return -EINVAL;
    }
    *equals = '\0';
    return flow_spec_set(spec, use, item, equals + 1, error);
}

void flow_spec_init(struct flow_spec *spec)
{
    *spec = (struct flow_spec){
        .pause_ns = 100000000,
        .timeout_ns = 30000000000,
        .http = {.requests = {{.weight = 1, .method = "GET", .path = "/"}},
                 .requests_count = 1,
                 .streams = 1,
                 .tenants = 1},
        .nfs = {.mix = {[FLOW_READ] = 1}, .export_path = "/export", .file = "data"},
        .weight = 1,
        .cost = 1};
}

int flow_spec_parse(const char *text, enum flow_use use, struct flow_spec *out,
                    char error[FLOW_ERROR_BYTES])
{
    char item[FLOW_HEADERS_BYTES];
    int result = 0;

    flow_spec_init(out);
    while (result == 0 && next_item(&text, item, sizeof(item)))
        result = set_item(out, use, item, error);
    return result ? result : flow_spec_check(out, use, error);
}
