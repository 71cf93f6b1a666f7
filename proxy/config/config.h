/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: what a user wrote in a YAML file, checked and turned into values the proxy can
 * use.
 *
 * config_load() reads a file, checks all of it and returns a `struct config`, or fails and says
 * every thing that is wrong with it, each with its line and column. After it:
 *   - every key that was left out has its default;
 *   - times are nanoseconds, sizes bytes, choices enums, addresses socket addresses, names of pools
 * pointers;
 *   - lists that must not be empty are not, names are unique, weights and depths are at least 1.
 * A struct config is immutable after loading, so any thread may read it. Everything in it belongs
 * to it and is freed by config_free(). A reload loads a second one; config_diff_is_live() says
 * whether a running proxy can take it over.
 *
 * `const char *` members are UTF-8 without control characters. "Optional" ones are NULL when not
 * set.
 */
#ifndef SPILLWAY_PROXY_CONFIG_CONFIG_H
#define SPILLWAY_PROXY_CONFIG_CONFIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "sched/admission/admission.h"
#include "sched/sched.h"

/* A time limit that was set to `off`: about 73 years, so that now + limit cannot overflow, signed
 * or not. */
#define CONFIG_NEVER_NS (INT64_MAX / 4)
/* A count or size limit that was set to `none`: compares greater than anything. */
#define CONFIG_NO_LIMIT_COUNT UINT32_MAX
#define CONFIG_NO_LIMIT_BYTES UINT64_MAX

/* A burst that was left to follow from the limit, before loading has ended. */
#define CONFIG_BURST_AUTO UINT64_MAX

/* A server's depth where neither it nor its pool names one, and the most it can be. */
#define CONFIG_SERVER_DEPTH     16
#define CONFIG_SERVER_DEPTH_MAX 1000000

#define CONFIG_WEIGHT_MAX 1000000
/* The weight-range that is left out: from the weight's part to as many times as much. */
#define CONFIG_WEIGHT_SPAN 8
#define CONFIG_COST_MAX    1000000

/* ------------------------------------------------------------------ addresses */

/* One socket address. */
struct config_endpoint {
    struct sockaddr_storage addr;
    socklen_t len;
};

/*
 * An address as written (`10.0.0.1:80`, `[::1]:80`, `name:80`, `*:80`, `unix:/path`) and what it
 * stands for: one endpoint, or several when a name has several addresses. `*` (binding only) gives
 * two: 0.0.0.0 and [::]; whoever binds sets IPV6_V6ONLY and may go on without the second where the
 * machine has no IPv6. Binding allows port 0 (the kernel chooses).
 */
struct config_address {
    const char *text;
    bool wildcard;
    struct config_endpoint *endpoints;
    size_t endpoint_count;
};

/* A network: `10.0.0.0/8`, `2001:db8::/32`, or one address. IPv4 is kept in its v4-mapped form. */
struct config_prefix {
    const char *text;
    uint8_t bytes[16];
    uint8_t bits; /* 0..128, counted in the 16 bytes */
    bool ipv4;
};

/* True when the address lies in the network. A v4-mapped IPv6 address counts as IPv4; `::/0`
 * matches no IPv4. UNIX sockets match nothing. */
bool config_prefix_match(const struct config_prefix *prefix, const struct sockaddr *addr);

/* ------------------------------------------------------------------ process-wide */

enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };
enum config_log_level {
    CONFIG_LOG_ERROR,
    CONFIG_LOG_WARNING,
    CONFIG_LOG_NOTICE,
    CONFIG_LOG_INFO,
    CONFIG_LOG_DEBUG,
};

enum config_output_kind { CONFIG_OUTPUT_OFF, CONFIG_OUTPUT_STDERR, CONFIG_OUTPUT_FILE };
struct config_output {
    const char *text; /* as written; the path when kind is CONFIG_OUTPUT_FILE */
    enum config_output_kind kind;
};

struct config_log {
    struct config_output target; /* never OFF */
    struct config_output access;
    enum config_log_format format;
    enum config_log_level level;
};

struct config_admin {
    const char *socket; /* optional: path of the UNIX socket spillctl talks to */
    struct config_address *http;
    size_t http_count; /* 0 = off */
};

/* ------------------------------------------------------------------ matching */

struct config_pair {
    const char *name;
    const char *value;
};

/* Numbered as enum nfs_class of protocols/rpc/nfs3.h. */
enum config_procedure_class {
    CONFIG_CLASS_METADATA,
    CONFIG_CLASS_READ,
    CONFIG_CLASS_WRITE,
    CONFIG_CLASS_COUNT,
    CONFIG_CLASS_ANY = CONFIG_CLASS_COUNT, /* in a match: not looked at */
};

/*
 * Conditions on a request; all that are set must hold, none set matches everything. HTTP looks at
 * headers, host, path, methods and clients; NFS at clients, uid, export_path and procedure. In a
 * list (methods, clients) one suffices.
 */
struct config_match {
    struct config_pair *headers; /* name: any case; value: equal, or `*` = present with any value */
    size_t header_count;
    const char *host; /* optional, lower case, no port; "*.example.com" matches every name below
                         example.com */
    const char *path; /* optional, starts with '/': prefix of the normalised path, ending at a '/'
                         boundary */
    const char **methods; /* as sent, case-sensitive */
    size_t method_count;
    struct config_prefix *clients;
    size_t client_count;
    uint32_t uid; /* when has_uid */
    bool has_uid;
    const char
        *export_path; /* optional, starts with '/': the export the file handle was learnt from */
    enum config_procedure_class procedure;
};

/* True when no condition is set. */
bool config_match_is_empty(const struct config_match *match);

/* ------------------------------------------------------------------ pools */

enum config_balance { CONFIG_BALANCE_ROUND_ROBIN, CONFIG_BALANCE_LEAST_OUTSTANDING };
enum config_depth_unit { CONFIG_DEPTH_REQUESTS, CONFIG_DEPTH_COST };
enum config_cost_by {
    CONFIG_COST_REQUEST,
    CONFIG_COST_BYTES,
    CONFIG_COST_TABLE,
    CONFIG_COST_HEADER,
    CONFIG_COST_SERVICE_TIME,
};

/* What makes a new flow of its own out of requests that match a flow: nothing, or one flow per
 * value of a key. */
enum config_flow_by {
    CONFIG_FLOW_BY_NOTHING,
    CONFIG_FLOW_BY_CLIENT_ADDRESS,
    CONFIG_FLOW_BY_UID,
    CONFIG_FLOW_BY_HEADER,
};

#define CONFIG_MOUNT_PORT_SAME    0
#define CONFIG_MOUNT_PORT_PORTMAP 65536

struct config_server {
    const char *name; /* the address as written, unless named */
    struct config_address address;
    /* Outstanding at this server: requests, or cost units (pool's depth_unit); >= 1. Left out: its
     * part of the pool's total, or 16 where that has none. */
    uint32_t depth;
    bool depth_is_auto;  /* it was left out: config_server_depth() */
    uint32_t mount_port; /* 1..65535, or CONFIG_MOUNT_PORT_SAME, CONFIG_MOUNT_PORT_PORTMAP (ask its
                            portmapper) */
};

/* The depth of a server that names none, one of `servers` (>= 1) in a pool of that total (0: none):
 * its part, rounded up. So a slow server holds up its part alone. */
uint32_t config_server_depth(uint64_t pool_depth, uint64_t servers);

struct config_flow {
    const char *name;
    uint32_t weight;          /* 1..CONFIG_WEIGHT_MAX; of each instance, when `by` makes several */
    struct sched_terms terms; /* likewise of each instance */
    bool burst_is_auto;       /* terms.burst follows from the limit: config_auto_burst() */
    uint32_t queue_limit;     /* queued requests of each instance; 0: the pool's flow_limit */
    /* What the pool's feedback loop keeps the mean response time below by moving the weight within
     * the range, 1 <= weight_min <= weight <= weight_max; 0: the weight is left alone. */
    uint64_t response_target_ns;
    const char *weight_range; /* as written */
    uint32_t weight_min, weight_max;
    struct config_match match;
    enum config_flow_by by;
    bool implicit;         /* the file does not name it: see default_flow */
    const char *by_header; /* header name when by is CONFIG_FLOW_BY_HEADER, else NULL */
    /* How many instances `by` may make at a time; further keys share one more. */
    uint32_t key_limit;
};

/* The burst that goes with a limit when none is named: what the limit allows in 10 ms, so that a
 * flow makes up for requests that were let go a little late. */
static inline uint64_t config_auto_burst(uint64_t limit_per_s)
{
    return limit_per_s / 100;
}

struct config_cost_entry {
    const char *operation; /* HTTP method, NFS class or NFSv3 procedure, `default` */
    uint32_t cost;         /* 1..CONFIG_COST_MAX; of per_size also 0 */
};

/* By the table: base + per_size * bytes moved / unit_bytes, rounded up. */
struct config_cost_rate {
    uint32_t base;     /* at least 1 */
    uint32_t per_size; /* 0: the same for every size */
};

/*
 * request: 1 each. bytes: per_request + bytes moved / unit_bytes, rounded up, and at least 1.
 * table: by operation, the rates below. header: what header fields of request and reply say.
 * service-time: the time at the server, in units of unit_ns. proxy/core/pool/cost.h says more.
 *
 * The rates are filled for every `by`, so that they can be used unlooked-at when by is
 * CONFIG_COST_TABLE. Without a table of the user's they are the calibrated ones of config_cost.c,
 * and unit_bytes is theirs.
 */
#define CONFIG_NFS3_PROCEDURES 22
struct config_cost {
    enum config_cost_by by;
    uint32_t per_request;
    uint64_t unit_bytes; /* >= 1 */
    struct config_cost_entry *table;
    size_t table_count;
    struct config_cost_entry *per_size; /* of the table's operations */
    size_t per_size_count;
    const char *request_header, *reply_header; /* optional; by header: at least one is set */
    uint32_t max;      /* by header: more counts as this; 1..CONFIG_COST_MAX */
    uint32_t fallback; /* by header, service-time: the cost while nothing is known; >= 1 */
    uint64_t unit_ns;  /* by service-time: >= 1 */
    struct config_cost_rate other; /* the table's `default`, else 1: operations not listed */
    struct config_cost_rate
        class_rate[CONFIG_CLASS_COUNT]; /* NFSv4 compounds and every procedure not listed by name */
    struct config_cost_rate nfs3_rate[CONFIG_NFS3_PROCEDURES]; /* by NFSv3 procedure number */
};
/* Rate of an HTTP method by the table; linear in the table, meant for building a lookup once. */
struct config_cost_rate config_cost_of_method(const struct config_cost *cost, const char *method,
                                              size_t length);

struct config_queue {
    uint32_t limit;      /* queued requests in the pool; beyond: 503 or JUKEBOX */
    uint32_t flow_limit; /* queued requests of one flow */
    uint64_t timeout_ns; /* longest wait for a turn */
};

/* What becomes of what the admission policy says no to. */
enum config_admission_action {
    CONFIG_ADMISSION_AUTO,   /* before the checks: config_admission_action() */
    CONFIG_ADMISSION_REFUSE, /* HTTP's default: 503 with Retry-After, JUKEBOX, DELAY */
    CONFIG_ADMISSION_MARK,   /* NFS's: it joins, but its client is not read for an interval */
};

/* Who may join the pool's queue: sched/admission/admission.h. It counts what the depth counts. */
struct config_admission {
    enum admit_policy algorithm; /* none: everybody */
    enum config_admission_action action;
    uint32_t limit;       /* tail: requests (or cost units) in the queue; >= 1 */
    uint64_t target_ns;   /* codel, pie: 0: the published one */
    uint64_t interval_ns; /* codel, duk-literal: 0: the published one */
};

/* What `auto` stands for: mark for NFS, refuse for HTTP and for a pool that no listener uses; other
 * actions for themselves. */
enum config_admission_action config_admission_action(enum config_admission_action action, bool nfs);

struct config_server_timeouts {
    uint64_t connect_ns;
    uint64_t first_byte_ns; /* request sent until the reply begins */
    uint64_t
        idle_ns; /* between two pieces of a reply, or of a request body the server does not take */
    uint64_t keep_alive_ns; /* unused server connection kept open */
};

struct config_retry {
    uint32_t attempts;    /* tries of one request in all, >= 1 */
    uint32_t dead_after;  /* consecutive failures that make a server dead, >= 1 */
    uint64_t dead_for_ns; /* a dead server is tried again after this */
};

struct config_pool_http {
    const char *via; /* pseudonym in Via and Forwarded fields */
};

struct config_pool_nfs {
    bool reserved_port;        /* connect to servers from a port below 1024 */
    uint64_t read_ahead_bytes; /* bytes of queued calls held per client connection before reading
                                  stops */
};

struct config_pool {
    const char *name;
    struct config_server *servers; /* at least one */
    size_t server_count;
    enum config_balance balance; /* HTTP only; an NFS client connection stays with one server */
    uint32_t depth; /* outstanding in the whole pool; 0 = no total beyond the servers' own depths */
    uint32_t depth_of_servers; /* sum of the servers' depths */
    enum config_depth_unit depth_unit;
    enum sched_algorithm algorithm;
    struct sched_options options; /* of the algorithm */
    uint64_t feedback_period_ns;  /* of the loop that moves weights, when a flow has a target */
    struct config_admission admission;
    struct config_queue queue;
    struct config_cost cost;
    struct config_server_timeouts timeouts;
    struct config_retry retry;
    uint32_t idle_connections; /* kept per server and worker (HTTP) */
    /*
     * In matching order: the first flow whose match holds takes the request. At least one.
     * default_flow (always the last) matches everything: it is the user's flow without a match, or
     * an implicit one named "default", weight 1.
     */
    struct config_flow *flows;
    size_t flow_count;
    struct config_flow *default_flow;
    struct config_pool_http http;
    struct config_pool_nfs nfs;
    bool used_by_http, used_by_nfs; /* which kinds of listeners lead here; never both */
};

/* ------------------------------------------------------------------ listeners */

enum config_protocol { CONFIG_PROTOCOL_HTTP, CONFIG_PROTOCOL_NFS };

struct config_route {
    struct config_match match;
    const char *pool_name;
    const struct config_pool *pool;
};

struct config_limits {
    uint32_t request_line_bytes; /* HTTP; beyond: 414 */
    uint32_t header_bytes;       /* HTTP, the whole header section; beyond: 431 */
    uint32_t header_fields;      /* HTTP; beyond: 431 */
    uint64_t body_bytes;         /* HTTP; beyond: 413; CONFIG_NO_LIMIT_BYTES = none */
    uint64_t record_bytes;       /* NFS; beyond: the connection closes */
    uint32_t fragments;          /* NFS, of one record; beyond: the connection closes */
    uint32_t connections;        /* open at a time on this listener; CONFIG_NO_LIMIT_COUNT = none */
};

struct config_client_timeouts {
    uint64_t header_ns;      /* HTTP: first byte of a request until the end of its header section */
    uint64_t body_idle_ns;   /* between two pieces of a request body, or of one NFS record */
    uint64_t keep_alive_ns;  /* HTTP: between requests */
    uint64_t client_idle_ns; /* replies waiting and the client takes nothing */
};

struct config_listener {
    const char *name;
    struct config_address *bind; /* at least one */
    size_t bind_count;
    enum config_protocol protocol;
    const char *pool_name; /* optional */
    const struct config_pool
        *pool; /* where no route matches; NULL: HTTP with routes only, answer 404 */
    struct config_route *routes; /* HTTP; first match wins */
    size_t route_count;
    struct config_limits limits;
    struct config_client_timeouts timeouts;
    struct config_prefix *trusted_proxies; /* whose X-Forwarded-* and Forwarded are kept */
    size_t trusted_proxy_count;
    bool abort_on_close; /* HTTP: a client's FIN cancels its request while it waits or is served */
};

struct config {
    uint32_t workers; /* event-loop threads, >= 1; `auto` became the number of CPUs this process may
                         use */
    const char *user, *group; /* optional, as written */
    bool has_user, has_group;
    uid_t uid;            /* when has_user */
    gid_t gid;            /* when has_group; the user's own group when only a user was given */
    const char *pid_file; /* optional */
    uint64_t drain_timeout_ns;
    uint64_t open_files; /* RLIMIT_NOFILE to set; 0 = auto: up to the hard limit */
    struct config_log log;
    struct config_admin admin;
    struct config_listener *listeners; /* at least one */
    size_t listener_count;
    struct config_pool *pools; /* at least one */
    size_t pool_count;
};

/* ------------------------------------------------------------------ errors */

enum config_severity { CONFIG_ERROR, CONFIG_WARNING };

struct config_error {
    enum config_severity severity;
    unsigned line, column; /* from 1; 0 = no place (the file could not be read) */
    char *key;             /* "pools[0].servers[1].depth"; "" = the whole file */
    char *message;
};

/* A growing list of what was found, in the file's order. */
struct config_errors {
    char *file;
    struct config_error *list;
    size_t count;
    size_t error_count; /* without the warnings */
};

void config_errors_init(struct config_errors *errors);
void config_errors_fini(struct config_errors *errors);
/* One line each: "FILE:LINE:COLUMN: KEY: MESSAGE", warnings with "warning: " before the key. */
void config_errors_print(const struct config_errors *errors, FILE *out);
/* The same line of one error without a newline into `buf`, cut to its size; returns as snprintf
 * does. */
int config_error_format(const struct config_errors *errors, size_t index, char *buf, size_t size);

/* ------------------------------------------------------------------ loading */

/* Do not ask the resolver or the user database: names that are not numeric addresses keep no
 * endpoints. For tests. */
#define CONFIG_NO_LOOKUP 1u

/*
 * Read, check and resolve the file. 0: *out is the configuration (warnings may be in `errors`).
 * Otherwise *out is NULL and `errors` says why: -EINVAL when the content is wrong, -ENOENT,
 * -EACCES, ... when the file can't be read. `errors` must be initialised and empty; it is
 * the caller's to print and to free. Looks names up with getaddrinfo(), so it may block: not for an
 * event loop's thread.
 */
int config_load(const char *path, struct config **out, struct config_errors *errors);
/* The same for text in memory; `name` stands for the file in messages. flags: 0 or
 * CONFIG_NO_LOOKUP. */
int config_load_text(const char *name, const char *text, size_t length, unsigned flags,
                     struct config **out, struct config_errors *errors);
/* NULL is allowed. */
void config_free(struct config *config);

/*
 * One value of a flow's promises, of a scheduler's options or of an admission, in the file's
 * notation ("100/s"), into a struct whose other such members hold what is in force: for changes
 * while running. The names there are come in the lists, which end with NULL. 0; -ENOENT for another
 * name; -EINVAL when the text is wrong, and `why` says so.
 */
extern const char *const config_flow_settings[];
extern const char *const config_pool_settings[];
int config_set_flow(struct config_flow *flow, const char *name, const char *text, char *why,
                    size_t size);
int config_set_pool(struct config_pool *pool, const char *name, const char *text, char *why,
                    size_t size);
/* "admission" (the policy), "admission-action" (auto by `nfs`), "admission-limit"... */
extern const char *const config_admission_settings[];
int config_set_admission(struct config_admission *admission, bool nfs, const char *name,
                         const char *text, char *why, size_t size);

/* NULL when the algorithm reads the setting of that name, else which ones do. */
const char *config_setting_readers(const char *name, enum sched_algorithm algorithm);
/* Likewise of config_admission_settings and policies. */
const char *config_admission_readers(const char *name, enum admit_policy policy);

/* Every key with its type, default and meaning, from the table the loader itself uses. */
void config_print_reference(FILE *out);

/*
 * True when a proxy running `old` can take `new` over in place. Otherwise `errors` names each
 * change that needs a restart (listeners' names, addresses and protocols; the set of pools and
 * their protocol and depth unit; workers, user, group, pid file, open files, admin addresses).
 * Weights, flows, depths, algorithms, admission, servers, costs, routes, timeouts, limits and
 * logging are live. `errors` must be initialised.
 */
bool config_diff_is_live(const struct config *old, const struct config *new,
                         struct config_errors *errors);

/* ------------------------------------------------------------------ names, as written in the file
 */

const char *config_protocol_name(enum config_protocol protocol);
const char *config_class_name(enum config_procedure_class class);

#endif
