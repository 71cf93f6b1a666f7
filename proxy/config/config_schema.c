/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all keys (see config_schema.h). Order here is order in the printed reference. */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "proxy/config/config_schema.h"
#include "proxy/config/config_value.h"

#define AT(structure, member)                                                                      \
    .offset = offsetof(struct structure, member), .size = sizeof(((struct structure *)0)->member)
#define LIST_AT(structure, member, count)                                                          \
    .offset = offsetof(struct structure, member),                                                  \
    .size = sizeof(*((struct structure *)0)->member),                                              \
    .count_offset = offsetof(struct structure, count)
/* A map whose keys' values go straight into the struct around it. */
#define WITHIN .offset = 0

#define MS      1000000ull
#define SEC     (1000 * MS)
#define DAY     (86400 * SEC)
#define KIB     1024ull
#define MIB     (1024 * KIB)
#define GIB     (1024 * MIB)
#define MILLION 1000000

/* ------------------------------------------------------------------ words */

/* The names are the scheduler's own. */
static cyaml_strval_t algorithm_words[SCHED_ALGORITHMS + 1];

static void fill_algorithm_words(void)
{
    for (int i = 0; i < SCHED_ALGORITHMS; i++) {
        algorithm_words[i] = (cyaml_strval_t){
            .str = sched_algorithm_name((enum sched_algorithm)i),
            .val = i,
        };
    }
}

static const cyaml_strval_t *get_algorithm_words(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_algorithm_words);
    return algorithm_words;
}

static cyaml_strval_t admission_words[ADMIT_POLICIES + 1];

static void fill_admission_words(void)
{
    for (int i = 0; i < ADMIT_POLICIES; i++) {
        admission_words[i] = (cyaml_strval_t){
            .str = admit_policy_name((enum admit_policy)i),
            .val = i,
        };
    }
}

static const cyaml_strval_t *get_admission_words(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_admission_words);
    return admission_words;
}

static const cyaml_strval_t admission_action_words[] = {
    {"auto", CONFIG_ADMISSION_AUTO},
    {"refuse", CONFIG_ADMISSION_REFUSE},
    {"mark", CONFIG_ADMISSION_MARK},
    {NULL, 0},
};
const cyaml_strval_t config_class_words[] = {
    {"read", CONFIG_CLASS_READ},
    {"write", CONFIG_CLASS_WRITE},
    {"metadata", CONFIG_CLASS_METADATA},
    {"any", CONFIG_CLASS_ANY},
    {NULL, 0},
};
const cyaml_strval_t config_protocol_words[] = {
    {"http", CONFIG_PROTOCOL_HTTP},
    {"nfs", CONFIG_PROTOCOL_NFS},
    {NULL, 0},
};
static const cyaml_strval_t log_format_words[] = {
    {"text", CONFIG_LOG_TEXT},
    {"json", CONFIG_LOG_JSON},
    {NULL, 0},
};
static const cyaml_strval_t log_level_words[] = {
    {"error", CONFIG_LOG_ERROR}, {"warning", CONFIG_LOG_WARNING}, {"notice", CONFIG_LOG_NOTICE},
    {"info", CONFIG_LOG_INFO},   {"debug", CONFIG_LOG_DEBUG},     {NULL, 0},
};
static const cyaml_strval_t balance_words[] = {
    {"round-robin", CONFIG_BALANCE_ROUND_ROBIN},
    {"least-outstanding", CONFIG_BALANCE_LEAST_OUTSTANDING},
    {NULL, 0},
};
static const cyaml_strval_t balance_unbuilt[] = {
    {"random", 0},
    {"power-of-two", 0},
    {"consistent-hash", 0},
    {NULL, 0},
};
static const cyaml_strval_t depth_unit_words[] = {
    {"requests", CONFIG_DEPTH_REQUESTS},
    {"cost", CONFIG_DEPTH_COST},
    {NULL, 0},
};
static const cyaml_strval_t cost_by_words[] = {
    {"request", CONFIG_COST_REQUEST},
    {"bytes", CONFIG_COST_BYTES},
    {"table", CONFIG_COST_TABLE},
    {"header", CONFIG_COST_HEADER},
    {"service-time", CONFIG_COST_SERVICE_TIME},
    {NULL, 0},
};
static const cyaml_strval_t flow_by_words[] = {
    {"nothing", CONFIG_FLOW_BY_NOTHING},
    {"client-address", CONFIG_FLOW_BY_CLIENT_ADDRESS},
    {"uid", CONFIG_FLOW_BY_UID},
    {NULL, 0},
};
static const cyaml_strval_t flow_by_unbuilt[] = {
    {"gid", 0}, {"cookie", 0}, {"export", 0}, {"file-handle", 0}, {"tls-subject", 0}, {NULL, 0},
};
static const cyaml_strval_t mount_port_words[] = {
    {"same", CONFIG_MOUNT_PORT_SAME},
    {"portmap", CONFIG_MOUNT_PORT_PORTMAP},
    {NULL, 0},
};
static const cyaml_strval_t auto_words[] = {{"auto", 0}, {NULL, 0}};
static const cyaml_strval_t at_limit_words[] = {{"wait", false}, {"refuse", true}, {NULL, 0}};
static const cyaml_strval_t auto_burst_words[] = {{"auto", CONFIG_BURST_AUTO}, {NULL, 0}};
static const cyaml_strval_t none_is_0_words[] = {{"none", 0}, {NULL, 0}};
static const cyaml_strval_t unknown_is_0_words[] = {{"unknown", 0}, {NULL, 0}};
static const cyaml_strval_t no_count_words[] = {{"none", CONFIG_NO_LIMIT_COUNT}, {NULL, 0}};
static const cyaml_strval_t no_size_words[] = {{"none", (int64_t)CONFIG_NO_LIMIT_BYTES}, {NULL, 0}};
static const cyaml_strval_t never_words[] = {{"off", CONFIG_NEVER_NS}, {NULL, 0}};

/* ------------------------------------------------------------------ small shapes */

static const struct config_key output_keys[] = {
    {"text", CONFIG_KIND_TEXT, .required = true,
     .expected = "off, stderr, or a path such as /var/log/spillway.log or ./spillway.log",
     AT(config_output, text)},
    {0},
};
static const struct config_shape output_shape = {
    .keys = output_keys, .shorthand = "text", .scalar_only = true};

static const struct config_key bind_keys[] = {
    {"text", CONFIG_KIND_BIND, .required = true, AT(config_address, text)},
    {0},
};
static const struct config_shape bind_shape = {
    .keys = bind_keys, .shorthand = "text", .scalar_only = true};

static const struct config_key address_keys[] = {
    {"text", CONFIG_KIND_ADDRESS, .required = true, AT(config_address, text)},
    {0},
};
static const struct config_shape address_shape = {
    .keys = address_keys, .shorthand = "text", .scalar_only = true};

static const struct config_key prefix_keys[] = {
    {"text", CONFIG_KIND_PREFIX, .required = true, AT(config_prefix, text)},
    {0},
};
static const struct config_shape prefix_shape = {
    .keys = prefix_keys, .shorthand = "text", .scalar_only = true};

static const struct config_key header_keys[] = {
    {"name", CONFIG_KIND_TOKEN, .required = true, .help = "HEADER-NAME", AT(config_pair, name)},
    {"value", CONFIG_KIND_TEXT, .required = true, AT(config_pair, value)},
    {0},
};
static const struct config_shape header_shape = {.keys = header_keys};

static const struct config_key cost_entry_keys[] = {
    {"operation", CONFIG_KIND_OPERATION, .required = true, .help = "OPERATION",
     AT(config_cost_entry, operation)},
    {"cost", CONFIG_KIND_COUNT, .required = true, .min = 1, .max = CONFIG_COST_MAX,
     AT(config_cost_entry, cost)},
    {0},
};
static const struct config_shape cost_entry_shape = {.keys = cost_entry_keys};

static const struct config_key per_size_keys[] = {
    {"operation", CONFIG_KIND_OPERATION, .required = true, .help = "OPERATION",
     AT(config_cost_entry, operation)},
    {"cost", CONFIG_KIND_COUNT, .required = true, .max = CONFIG_COST_MAX,
     AT(config_cost_entry, cost)},
    {0},
};
static const struct config_shape per_size_shape = {.keys = per_size_keys};

/* ------------------------------------------------------------------ matching */

static const struct config_key match_keys[] = {
    {"header", CONFIG_KIND_PAIRS, .shape = &header_shape,
     .help =
         "HTTP: header fields by name (any case) and value; `*` for any value. All must be there.",
     LIST_AT(config_match, headers, header_count)},
    {"host", CONFIG_KIND_HOST,
     .help = "HTTP: the host asked for, without port; `*.example.com` for all below it.",
     AT(config_match, host)},
    {"path", CONFIG_KIND_SLASH,
     .help = "HTTP: prefix of the path, ending where a segment ends: /a is also /a/b, not /ab.",
     AT(config_match, path)},
    {"method", CONFIG_KIND_LIST, .one_too = true, .help = "HTTP: one of these methods.",
     LIST_AT(config_match, methods, method_count)},
    {"client", CONFIG_KIND_LIST, .one_too = true, .shape = &prefix_shape,
     .help = "The client's address lies in one of these networks.",
     LIST_AT(config_match, clients, client_count)},
    {"uid", CONFIG_KIND_COUNT, .max = UINT32_MAX - 1,
     .help = "NFS: user id of the call (AUTH_SYS).", AT(config_match, uid)},
    {"export", CONFIG_KIND_SLASH, .help = "NFS: the export the file belongs to, as mounted.",
     AT(config_match, export_path)},
    {"procedure", CONFIG_KIND_WORD, .fallback = "any", .words = config_class_words,
     .help = "NFS: the class of the procedure.", AT(config_match, procedure)},
    {0},
};
static const struct config_shape match_shape = {.keys = match_keys};

/* ------------------------------------------------------------------ pools */

static const struct config_key server_keys[] = {
    {"name", CONFIG_KIND_NAME,
     .help = "Name in statistics and commands; the address when left out.",
     AT(config_server, name)},
    {"address", CONFIG_KIND_MAP, .required = true, .shape = &address_shape, .help = "Where it is.",
     AT(config_server, address)},
    {"depth", CONFIG_KIND_COUNT, .fallback = "auto", .min = 1, .max = CONFIG_SERVER_DEPTH_MAX,
     .words = auto_words,
     .help = "Requests (or cost, see depth-unit) it has outstanding at most; auto: its part of the "
             "pool's depth, or 16 where that is none.",
     AT(config_server, depth)},
    {"mount-port", CONFIG_KIND_COUNT, .fallback = "same", .min = 1, .max = 65535,
     .words = mount_port_words,
     .help = "NFS: port of its MOUNT service: that of NFS, a number, or what its portmapper says.",
     AT(config_server, mount_port)},
    {0},
};
static const struct config_shape server_shape = {.keys = server_keys, .shorthand = "address"};

static const struct config_key feedback_keys[] = {
    {"period", CONFIG_KIND_DURATION, .fallback = "5s", .min = SEC, .max = DAY,
     .help = "A step, up or down, is made once in this time at most.",
     AT(config_pool, feedback_period_ns)},
    {0},
};
static const struct config_shape feedback_shape = {.keys = feedback_keys};

static const struct config_key scheduler_keys[] = {
    {"algorithm", CONFIG_KIND_WORD, .fallback = "sfqd", .word_source = get_algorithm_words,
     .help = "Order in which queued requests go: by arrival (fifo), fair by the flows' weights, by "
             "deadline (edf), small ones first (scf), within rates (leaky-bucket, mclock).",
     AT(config_pool, algorithm)},
    {"slack", CONFIG_KIND_COUNT, .fallback = "0", .max = 100 * MILLION,
     .help = "hybrid: how far a flow may go beyond its window, in what depths count; 0: as rw; the "
             "depth: as sfqd.",
     AT(config_pool, options.slack)},
    {"capacity", CONFIG_KIND_RATE, .fallback = "unknown", .min = 1, .max = SCHED_RATE_MAX,
     .words = unknown_is_0_words,
     .help = "wfq: what the servers do together, in requests (or cost) per second; unknown: "
             "estimated. mclock: what reservations may add up to.",
     AT(config_pool, options.capacity_per_s)},
    {"ageing", CONFIG_KIND_DURATION, .fallback = "1ms", .min = 1, .max = DAY,
     .help = "scf: the wait that makes up for one unit of cost.",
     AT(config_pool, options.ageing_ns)},
    {"feedback", CONFIG_KIND_MAP, .shape = &feedback_shape,
     .help = "The loop that moves the weights of flows with a response-target.", WITHIN},
    {"at-limit", CONFIG_KIND_WORD, .fallback = "wait", .words = at_limit_words,
     .help = "mclock: what becomes of a request that is over its flow's limit: it waits, or it is "
             "refused (429, JUKEBOX).",
     AT(config_pool, options.refuse_at_limit)},
    {0},
};
const struct config_shape config_scheduler_shape = {.keys = scheduler_keys,
                                                    .shorthand = "algorithm"};

static const struct config_key admission_keys[] = {
    {"algorithm", CONFIG_KIND_WORD, .fallback = "none", .word_source = get_admission_words,
     .help = "Who may join the queue. none: everybody. duk: nobody who would only make it longer; "
             "it has nothing to tune. tail, codel, pie, duk-literal: to compare with.",
     AT(config_admission, algorithm)},
    {"action", CONFIG_KIND_WORD, .fallback = "auto", .words = admission_action_words,
     .help =
         "What becomes of a request that may not. refuse: 503 with Retry-After, JUKEBOX, DELAY. "
         "mark: it joins, but its client's connection is not read for a while. auto: refuse "
         "for HTTP, mark for NFS.",
     AT(config_admission, action)},
    {"limit", CONFIG_KIND_COUNT, .fallback = "64", .min = 1, .max = 100 * MILLION,
     .help = "tail: requests (or cost units) in the queue.", AT(config_admission, limit)},
    {"target", CONFIG_KIND_DURATION, .fallback = "auto", .min = 1000, .max = DAY,
     .words = auto_words, .help = "codel, pie: the wait to keep to; auto: 5 ms, 20 ms.",
     AT(config_admission, target_ns)},
    {"interval", CONFIG_KIND_DURATION, .fallback = "auto", .min = 1000, .max = DAY,
     .words = auto_words,
     .help = "codel: how long the wait must be above the target; auto: 100 ms. duk-literal: its "
             "interval; auto: by the source's algorithm 3.",
     AT(config_admission, interval_ns)},
    {0},
};
const struct config_shape config_admission_shape = {.keys = admission_keys,
                                                    .shorthand = "algorithm"};

static const struct config_key queue_keys[] = {
    {"limit", CONFIG_KIND_COUNT, .fallback = "4096", .min = 1, .max = 100 * MILLION,
     .help = "Requests waiting in the pool (NFS: for one of its servers); more are refused (503, "
             "JUKEBOX) or held back.",
     AT(config_queue, limit)},
    {"flow-limit", CONFIG_KIND_COUNT, .fallback = "1024", .min = 1, .max = 100 * MILLION,
     .help = "Requests of one flow waiting.", AT(config_queue, flow_limit)},
    {"timeout", CONFIG_KIND_DURATION, .fallback = "30s", .min = MS, .max = DAY,
     .words = never_words, .help = "Longest wait for a turn.", AT(config_queue, timeout_ns)},
    {0},
};
static const struct config_shape queue_shape = {.keys = queue_keys};

static const struct config_key cost_keys[] = {
    {"by", CONFIG_KIND_WORD, .fallback = "request", .words = cost_by_words,
     .help = "What a request weighs: 1, its bytes, what the table says, what header fields say, or "
             "the time it takes a server.",
     AT(config_cost, by)},
    {"per-request", CONFIG_KIND_COUNT, .fallback = "1", .max = CONFIG_COST_MAX,
     .help = "by bytes: added to each request's cost.", AT(config_cost, per_request)},
    {"bytes-unit", CONFIG_KIND_SIZE, .fallback = "4KiB", .min = 1, .max = GIB,
     .help = "by bytes: bytes moved for one unit of cost. by table: bytes moved for what per-size "
             "says.",
     AT(config_cost, unit_bytes)},
    {"table", CONFIG_KIND_PAIRS, .shape = &cost_entry_shape,
     .help =
         "by table: cost of each HTTP method, NFS class (read, write, metadata) or NFSv3 procedure "
         "(getattr, ...); `default` for the others, else 1. Left out: what was measured on "
         "nfs-ganesha and nginx, in microseconds.",
     LIST_AT(config_cost, table, table_count)},
    {"per-size", CONFIG_KIND_PAIRS, .shape = &per_size_shape,
     .help = "by table: added to an operation's cost for every bytes-unit that request and reply "
             "have; in proportion, rounded up at the end.",
     LIST_AT(config_cost, per_size, per_size_count)},
    {"request-header", CONFIG_KIND_TOKEN,
     .help = "by header: field of a request with its expected cost. Clients can write what they "
             "like: only behind something that sets it for them.",
     AT(config_cost, request_header)},
    {"reply-header", CONFIG_KIND_TOKEN,
     .help = "by header: field of a server's reply with what the request has really cost.",
     AT(config_cost, reply_header)},
    {"max", CONFIG_KIND_COUNT, .fallback = "1000000", .min = 1, .max = CONFIG_COST_MAX,
     .help = "by header: a field that says more counts as this.", AT(config_cost, max)},
    {"fallback", CONFIG_KIND_COUNT, .fallback = "1", .min = 1, .max = CONFIG_COST_MAX,
     .help = "by header: cost of a request without a usable field. by service-time: cost while "
             "nothing has been measured.",
     AT(config_cost, fallback)},
    {"unit", CONFIG_KIND_DURATION, .fallback = "1us", .min = 1, .max = DAY,
     .help = "by service-time: time at the server for one unit of cost.", AT(config_cost, unit_ns)},
    {0},
};
static const struct config_shape cost_shape = {.keys = cost_keys};

static const struct config_key server_timeout_keys[] = {
    {"connect", CONFIG_KIND_DURATION, .fallback = "5s", .min = MS, .max = DAY, .words = never_words,
     .help = "For the connection to be made.", AT(config_server_timeouts, connect_ns)},
    {"first-byte", CONFIG_KIND_DURATION, .fallback = "60s", .min = MS, .max = DAY,
     .words = never_words, .help = "HTTP: from the request sent until the reply begins.",
     AT(config_server_timeouts, first_byte_ns)},
    {"idle", CONFIG_KIND_DURATION, .fallback = "60s", .min = MS, .max = DAY, .words = never_words,
     .help = "Between two pieces of a reply.", AT(config_server_timeouts, idle_ns)},
    {"keep-alive", CONFIG_KIND_DURATION, .fallback = "60s", .min = MS, .max = DAY,
     .words = never_words, .help = "HTTP: an unused connection is kept this long.",
     AT(config_server_timeouts, keep_alive_ns)},
    {0},
};
static const struct config_shape server_timeout_shape = {.keys = server_timeout_keys};

static const struct config_key retry_keys[] = {
    {"attempts", CONFIG_KIND_COUNT, .fallback = "2", .min = 1, .max = 10,
     .help = "HTTP: tries of one request in all, where trying again is safe.",
     AT(config_retry, attempts)},
    {"dead-after", CONFIG_KIND_COUNT, .fallback = "3", .min = 1, .max = 1000,
     .help = "Failures in a row after which a server counts as dead.",
     AT(config_retry, dead_after)},
    {"dead-for", CONFIG_KIND_DURATION, .fallback = "2s", .min = MS, .max = DAY,
     .help = "A dead server is tried again after this time.", AT(config_retry, dead_for_ns)},
    {0},
};
static const struct config_shape retry_shape = {.keys = retry_keys};

#define FLOW_BY "client-address, uid, or { header: NAME }"
static const struct config_key by_keys[] = {
    {"source", CONFIG_KIND_WORD, .hidden = true, .fallback = "nothing", .expected = FLOW_BY,
     .words = flow_by_words, .unbuilt = flow_by_unbuilt, AT(config_flow, by)},
    {"header", CONFIG_KIND_TOKEN, .help = "HTTP: one flow per value of this header field.",
     AT(config_flow, by_header)},
    {0},
};
static const struct config_shape by_shape = {.keys = by_keys, .shorthand = "source"};

static const struct config_key flow_keys[] = {
    {"name", CONFIG_KIND_NAME, .required = true, .help = "Name in statistics and commands.",
     AT(config_flow, name)},
    {"weight", CONFIG_KIND_COUNT, .fallback = "1", .min = 1, .max = CONFIG_WEIGHT_MAX,
     .help = "Its share of the pool is its weight over those of all flows with requests waiting.",
     AT(config_flow, weight)},
    {"target", CONFIG_KIND_DURATION, .fallback = "none", .min = 1000, .max = DAY,
     .words = none_is_0_words,
     .help = "edf: its requests are due this long after they came; none: at once.",
     AT(config_flow, terms.target_ns)},
    {"reservation", CONFIG_KIND_RATE, .fallback = "none", .min = 1, .max = SCHED_RATE_MAX,
     .words = none_is_0_words,
     .help = "mclock: requests (or cost) per second that it gets before all shares.",
     AT(config_flow, terms.reservation_per_s)},
    {"limit", CONFIG_KIND_RATE, .fallback = "none", .min = 1, .max = SCHED_RATE_MAX,
     .words = none_is_0_words,
     .help = "mclock, leaky-bucket: requests (or cost) per second that it gets at most.",
     AT(config_flow, terms.limit_per_s)},
    {"burst", CONFIG_KIND_COUNT, .fallback = "auto", .max = 1000 * (uint64_t)MILLION,
     .words = auto_burst_words,
     .help = "With limit: how much of it may come at once beyond one request; auto: what the limit "
             "allows in 10 ms.",
     AT(config_flow, terms.burst)},
    {"response-target", CONFIG_KIND_DURATION, .fallback = "none", .min = 1000, .max = DAY,
     .words = none_is_0_words,
     .help = "Mean response time, waiting included, not to be exceeded: the weight is moved within "
             "weight-range to keep it. It moves by a quarter at most, so weights of 16 and more "
             "move finely.",
     AT(config_flow, response_target_ns)},
    {"weight-range", CONFIG_KIND_WEIGHT_RANGE, .fallback = "auto",
     .help = "With response-target: the least and the largest weight; auto: an eighth of the "
             "weight to eight times as much.",
     AT(config_flow, weight_range)},
    {"queue-limit", CONFIG_KIND_COUNT, .fallback = "auto", .min = 1, .max = 100 * MILLION,
     .words = auto_words, .help = "Its requests waiting; auto: the pool's queue.flow-limit.",
     AT(config_flow, queue_limit)},
    {"match", CONFIG_KIND_MAP, .shape = &match_shape,
     .help =
         "Which requests are its own; all that is said must hold. None: those of no other flow.",
     AT(config_flow, match)},
    {"by", CONFIG_KIND_MAP, .shape = &by_shape, .expected = FLOW_BY,
     .help = "Make one flow of this weight for each `client-address`, each `uid` (NFS), or each "
             "value of a header field ({ header: NAME }).",
     WITHIN},
    {"key-limit", CONFIG_KIND_COUNT, .fallback = "65536", .min = 1, .max = 10 * MILLION,
     .help = "Flows that `by` makes at most; further keys share one more.",
     AT(config_flow, key_limit)},
    {0},
};
const struct config_shape config_flow_shape = {.keys = flow_keys};

static const struct config_key pool_http_keys[] = {
    {"via", CONFIG_KIND_TOKEN, .fallback = "spillway",
     .help = "This proxy's name in Via and Forwarded header fields.", AT(config_pool_http, via)},
    {0},
};
static const struct config_shape pool_http_shape = {.keys = pool_http_keys};

static const struct config_key pool_nfs_keys[] = {
    {"reserved-port", CONFIG_KIND_BOOL, .fallback = "false",
     .help = "Connect from a port below 1024 (root only), as servers without `insecure` ask for.",
     AT(config_pool_nfs, reserved_port)},
    {"read-ahead", CONFIG_KIND_SIZE, .fallback = "4MiB", .min = 64 * KIB, .max = GIB,
     .help = "Bytes of waiting calls held per client connection; then it is read no further.",
     AT(config_pool_nfs, read_ahead_bytes)},
    {0},
};
static const struct config_shape pool_nfs_shape = {.keys = pool_nfs_keys};

static const struct config_key pool_keys[] = {
    {"name", CONFIG_KIND_POOL_NAME, .required = true,
     .help = "Name for listeners and in statistics.", AT(config_pool, name)},
    {"servers", CONFIG_KIND_LIST, .required = true, .shape = &server_shape,
     .help = "The servers; an address alone will do.", LIST_AT(config_pool, servers, server_count)},
    {"balance", CONFIG_KIND_WORD, .fallback = "least-outstanding", .words = balance_words,
     .unbuilt = balance_unbuilt,
     .help = "HTTP: which server takes the next request. An NFS client stays with one server.",
     AT(config_pool, balance)},
    {"depth", CONFIG_KIND_COUNT, .fallback = "none", .min = 1, .max = 100 * MILLION,
     .words = none_is_0_words,
     .help = "Outstanding in the whole pool at most; none: the servers' depths are the only limit.",
     AT(config_pool, depth)},
    {"depth-unit", CONFIG_KIND_WORD, .fallback = "requests", .words = depth_unit_words,
     .help = "What depths count.", AT(config_pool, depth_unit)},
    {"scheduler", CONFIG_KIND_MAP, .shape = &config_scheduler_shape, .help = "Who goes next.",
     WITHIN},
    {"admission", CONFIG_KIND_MAP, .shape = &config_admission_shape, .help = "Who may wait.",
     AT(config_pool, admission)},
    {"queue", CONFIG_KIND_MAP, .shape = &queue_shape, .help = "Limits on waiting.",
     AT(config_pool, queue)},
    {"cost", CONFIG_KIND_MAP, .shape = &cost_shape, .help = "What a request counts for.",
     AT(config_pool, cost)},
    {"timeouts", CONFIG_KIND_MAP, .shape = &server_timeout_shape, .help = "Towards servers.",
     AT(config_pool, timeouts)},
    {"retry", CONFIG_KIND_MAP, .shape = &retry_shape, .help = "Failing servers.",
     AT(config_pool, retry)},
    {"idle-connections", CONFIG_KIND_COUNT, .fallback = "256", .max = MILLION,
     .help = "HTTP: unused connections kept per server and worker.",
     AT(config_pool, idle_connections)},
    {"flows", CONFIG_KIND_LIST, .shape = &config_flow_shape,
     .help = "The flows; the first whose match holds takes a request. Requests of none go to the "
             "flow without a match, or to one named `default` of weight 1.",
     LIST_AT(config_pool, flows, flow_count)},
    {"http", CONFIG_KIND_MAP, .shape = &pool_http_shape, .help = "Only for HTTP.",
     AT(config_pool, http)},
    {"nfs", CONFIG_KIND_MAP, .shape = &pool_nfs_shape, .help = "Only for NFS.",
     AT(config_pool, nfs)},
    {0},
};
static const struct config_shape pool_shape = {.keys = pool_keys};

/* ------------------------------------------------------------------ listeners */

static const struct config_key route_keys[] = {
    {"match", CONFIG_KIND_MAP, .required = true, .shape = &match_shape, .help = "As in flows.",
     AT(config_route, match)},
    {"pool", CONFIG_KIND_NAME, .required = true, .help = "Where they go.",
     AT(config_route, pool_name)},
    {0},
};
static const struct config_shape route_shape = {.keys = route_keys};

static const struct config_key limit_keys[] = {
    {"request-line", CONFIG_KIND_SIZE, .fallback = "8KiB", .min = 64, .max = 64 * KIB,
     .help = "HTTP: longer ones are answered 414.", AT(config_limits, request_line_bytes)},
    {"header", CONFIG_KIND_SIZE, .fallback = "32KiB", .min = 256, .max = 128 * KIB,
     .help = "HTTP: larger header sections are answered 431.", AT(config_limits, header_bytes)},
    {"header-fields", CONFIG_KIND_COUNT, .fallback = "100", .min = 1, .max = 1000,
     .help = "HTTP: more header fields are answered 431.", AT(config_limits, header_fields)},
    {"body", CONFIG_KIND_SIZE, .fallback = "none", .words = no_size_words, .max = 1ull << 50,
     .help = "HTTP: larger request bodies are answered 413.", AT(config_limits, body_bytes)},
    {"record", CONFIG_KIND_SIZE, .fallback = "68MiB", .min = 4 * KIB, .max = GIB,
     .help = "NFS: a longer RPC record closes its connection.", AT(config_limits, record_bytes)},
    {"fragments", CONFIG_KIND_COUNT, .fallback = "65536", .min = 1, .max = 16 * MILLION,
     .help = "NFS: an RPC record of more fragments closes its connection.",
     AT(config_limits, fragments)},
    {"connections", CONFIG_KIND_COUNT, .fallback = "none", .min = 1, .max = 100 * MILLION,
     .words = no_count_words, .help = "Client connections open at a time.",
     AT(config_limits, connections)},
    {0},
};
static const struct config_shape limit_shape = {.keys = limit_keys};

static const struct config_key client_timeout_keys[] = {
    {"header", CONFIG_KIND_DURATION, .fallback = "30s", .min = MS, .max = DAY, .words = never_words,
     .help = "HTTP: from a request's first byte to the end of its header.",
     AT(config_client_timeouts, header_ns)},
    {"body-idle", CONFIG_KIND_DURATION, .fallback = "30s", .min = MS, .max = DAY,
     .words = never_words, .help = "Between two pieces of a request body or RPC record.",
     AT(config_client_timeouts, body_idle_ns)},
    {"keep-alive", CONFIG_KIND_DURATION, .fallback = "60s", .min = MS, .max = DAY,
     .words = never_words, .help = "HTTP: between two requests.",
     AT(config_client_timeouts, keep_alive_ns)},
    {"client-idle", CONFIG_KIND_DURATION, .fallback = "30s", .min = MS, .max = DAY,
     .words = never_words, .help = "A reply waits and the client takes none of it.",
     AT(config_client_timeouts, client_idle_ns)},
    {0},
};
static const struct config_shape client_timeout_shape = {.keys = client_timeout_keys};

static const struct config_key listener_keys[] = {
    {"name", CONFIG_KIND_NAME, .required = true, .help = "Name in logs and statistics.",
     AT(config_listener, name)},
    {"bind", CONFIG_KIND_LIST, .required = true, .one_too = true, .shape = &bind_shape,
     .help = "Addresses to listen on.", LIST_AT(config_listener, bind, bind_count)},
    {"protocol", CONFIG_KIND_WORD, .required = true, .words = config_protocol_words,
     .help = "What clients speak (nfs: NFS, MOUNT and NFSACL).", AT(config_listener, protocol)},
    {"pool", CONFIG_KIND_NAME,
     .help =
         "Pool of requests that no route takes. May be left out for HTTP with routes: 404 then.",
     AT(config_listener, pool_name)},
    {"routes", CONFIG_KIND_LIST, .shape = &route_shape,
     .help = "HTTP: other pools for some requests; the first that matches.",
     LIST_AT(config_listener, routes, route_count)},
    {"limits", CONFIG_KIND_MAP, .shape = &limit_shape, .help = "What a client may send.",
     AT(config_listener, limits)},
    {"timeouts", CONFIG_KIND_MAP, .shape = &client_timeout_shape, .help = "Towards clients.",
     AT(config_listener, timeouts)},
    {"trusted-proxies", CONFIG_KIND_LIST, .one_too = true, .shape = &prefix_shape,
     .help = "HTTP: networks whose X-Forwarded-* and Forwarded header fields are kept.",
     LIST_AT(config_listener, trusted_proxies, trusted_proxy_count)},
    {"abort-on-close", CONFIG_KIND_BOOL, .fallback = "false",
     .help = "HTTP: a client that shuts down its sending side has given up its request.",
     AT(config_listener, abort_on_close)},
    {0},
};
static const struct config_shape listener_shape = {.keys = listener_keys};

/* ------------------------------------------------------------------ the process */

static const struct config_key log_keys[] = {
    {"target", CONFIG_KIND_MAP, .fallback = "stderr", .shape = &output_shape,
     .help = "Where messages go.", AT(config_log, target)},
    {"format", CONFIG_KIND_WORD, .fallback = "text", .words = log_format_words,
     .help = "Of both logs.", AT(config_log, format)},
    {"level", CONFIG_KIND_WORD, .fallback = "notice", .words = log_level_words,
     .help = "The least urgent messages that are written.", AT(config_log, level)},
    {"access", CONFIG_KIND_MAP, .fallback = "off", .shape = &output_shape,
     .help = "Where a line per request goes.", AT(config_log, access)},
    {0},
};
static const struct config_shape log_shape = {.keys = log_keys};

static const struct config_key admin_keys[] = {
    {"socket", CONFIG_KIND_PATH, .max = 107,
     .help = "Path of the UNIX socket for spillctl; off when left out.", AT(config_admin, socket)},
    {"http", CONFIG_KIND_LIST, .one_too = true, .shape = &bind_shape,
     .help = "Addresses for /metrics; off when left out. Anyone who can reach it can read it.",
     LIST_AT(config_admin, http, http_count)},
    {0},
};
static const struct config_shape admin_shape = {.keys = admin_keys};

static const struct config_key root_keys[] = {
    {"workers", CONFIG_KIND_COUNT, .fallback = "auto", .min = 1, .max = 256, .words = auto_words,
     .help = "Event-loop threads; auto: as many as CPUs this process may use.",
     AT(config, workers)},
    {"user", CONFIG_KIND_NAME, .help = "Become this user once the listeners are bound.",
     AT(config, user)},
    {"group", CONFIG_KIND_NAME, .help = "And this group; the user's own when left out.",
     AT(config, group)},
    {"pid-file", CONFIG_KIND_PATH, .help = "Where to write the process id.", AT(config, pid_file)},
    {"drain-timeout", CONFIG_KIND_DURATION, .fallback = "30s", .max = DAY, .words = never_words,
     .help = "After SIGTERM, requests under way have this long to end.",
     AT(config, drain_timeout_ns)},
    {"open-files", CONFIG_KIND_COUNT, .fallback = "auto", .min = 64, .max = 1ull << 30,
     .words = auto_words, .help = "Limit on open files; auto: as high as the hard limit.",
     AT(config, open_files)},
    {"log", CONFIG_KIND_MAP, .shape = &log_shape, .help = "Messages and accesses.",
     AT(config, log)},
    {"admin", CONFIG_KIND_MAP, .shape = &admin_shape, .help = "Control and metrics.",
     AT(config, admin)},
    {"listeners", CONFIG_KIND_LIST, .required = true, .shape = &listener_shape,
     .help = "Where clients come in.", LIST_AT(config, listeners, listener_count)},
    {"pools", CONFIG_KIND_LIST, .required = true, .shape = &pool_shape,
     .help = "Groups of servers that share one queue.", LIST_AT(config, pools, pool_count)},
    {0},
};
const struct config_shape config_schema = {.keys = root_keys};

/* ------------------------------------------------------------------ words and descriptions */

const cyaml_strval_t *config_key_words(const struct config_key *key)
{
    return key->word_source != NULL ? key->word_source() : key->words;
}

bool config_word_value(const cyaml_strval_t *words, const char *text, int64_t *out)
{
    for (; words != NULL && words->str != NULL; words++) {
        if (strcmp(words->str, text) == 0) {
            *out = words->val;
            return true;
        }
    }
    return false;
}

const char *config_word_name(const cyaml_strval_t *words, int64_t value)
{
    for (; words->str != NULL; words++) {
        if (words->val == value) {
            return words->str;
        }
    }
    return "?";
}

static void list_words(const cyaml_strval_t *words, const char *separator, char *buf, size_t size)
{
    for (; words != NULL && words->str != NULL; words++) {
        const size_t length = strlen(buf);

        snprintf(buf + length, size - length, "%s%s", separator, words->str);
        separator = ", ";
    }
}

/* " (1ms to 24h)", " (at least 4KiB)", "". */
static void describe_range(const struct config_key *key, char *buf, size_t size)
{
    char low[32], high[32];

    if (key->kind == CONFIG_KIND_DURATION) {
        config_duration_text(key->min, low, sizeof(low));
        config_duration_text(key->max, high, sizeof(high));
    } else if (key->kind == CONFIG_KIND_SIZE) {
        config_size_text(key->min, low, sizeof(low));
        config_size_text(key->max, high, sizeof(high));
    } else {
        const char *unit = key->kind == CONFIG_KIND_RATE ? "/s" : "";

        snprintf(low, sizeof(low), "%" PRIu64 "%s", key->min, unit);
        snprintf(high, sizeof(high), "%" PRIu64 "%s", key->max, unit);
    }
    snprintf(buf, size, " from %s to %s", low, high);
}

static const char *noun(const struct config_key *key)
{
    static const char *const nouns[] = {
        [CONFIG_KIND_TEXT] = "a text",
        [CONFIG_KIND_PATH] = "a path such as /run/NAME or ./NAME",
        [CONFIG_KIND_NAME] = "a name (letters, digits and ._-:/@+)",
        [CONFIG_KIND_POOL_NAME] = "a name (letters, digits and ._-:@+)",
        [CONFIG_KIND_TOKEN] = "an HTTP token (letters, digits and !#$%&'*+-.^_`|~)",
        [CONFIG_KIND_OPERATION] =
            "an HTTP method, read, write, metadata, an NFSv3 procedure, or default",
        [CONFIG_KIND_HOST] = "a host name without port, or *.NAME",
        [CONFIG_KIND_SLASH] = "a path that begins with /",
        [CONFIG_KIND_BIND] = "IP:PORT, [IPV6]:PORT, *:PORT, NAME:PORT or unix:/PATH",
        [CONFIG_KIND_ADDRESS] = "IP:PORT, [IPV6]:PORT, NAME:PORT or unix:/PATH",
        [CONFIG_KIND_PREFIX] = "an IPv4 or IPv6 address or network such as 10.0.0.0/8",
        [CONFIG_KIND_DURATION] = "a time such as 30s (units us, ms, s, m, h)",
        [CONFIG_KIND_SIZE] = "a size such as 64KiB (units B, KiB, MiB, GiB)",
        [CONFIG_KIND_COUNT] = "a number",
        [CONFIG_KIND_RATE] = "a rate such as 100/s",
        [CONFIG_KIND_WEIGHT_RANGE] = "a range such as 1..64 from 1 to 1000000, or auto",
        [CONFIG_KIND_BOOL] = "true or false",
        [CONFIG_KIND_MAP] = "a map of keys",
        [CONFIG_KIND_LIST] = "a list",
        [CONFIG_KIND_PAIRS] = "a map",
    };

    return nouns[key->kind];
}

const char *config_key_expected(const struct config_key *key, char *buf, size_t size)
{
    const struct config_shape *shape = key->shape;

    if (key->expected != NULL) {
        snprintf(buf, size, "%s", key->expected);
        return buf;
    }
    if (key->kind == CONFIG_KIND_WORD) {
        buf[0] = '\0';
        list_words(config_key_words(key), "one of: ", buf, size);
        return buf;
    }
    if (key->kind == CONFIG_KIND_MAP && shape->scalar_only) {
        return config_key_expected(&shape->keys[0], buf, size);
    }
    if (key->kind == CONFIG_KIND_LIST) {
        char item[160];
        const char *each = shape == NULL ? "HTTP methods" : "maps of keys";

        if (shape != NULL && shape->scalar_only) {
            snprintf(item, sizeof(item), "entries of the form %s", noun(&shape->keys[0]));
            each = item;
        }
        snprintf(buf, size, "a list of %s", each);
        return buf;
    }
    snprintf(buf, size, "%s", noun(key));
    if (key->kind == CONFIG_KIND_PAIRS) {
        snprintf(buf, size, "a map of %s: %s", shape->keys[0].help,
                 shape->keys[1].kind == CONFIG_KIND_COUNT ? "NUMBER" : "VALUE");
    }
    if (key->kind >= CONFIG_KIND_DURATION && key->kind <= CONFIG_KIND_RATE) {
        const size_t length = strlen(buf);

        describe_range(key, buf + length, size - length);
        list_words(config_key_words(key), " or ", buf, size);
    }
    return buf;
}

const char *config_protocol_name(enum config_protocol protocol)
{
    return config_word_name(config_protocol_words, protocol);
}

const char *config_class_name(enum config_procedure_class class)
{
    return config_word_name(config_class_words, class);
}
