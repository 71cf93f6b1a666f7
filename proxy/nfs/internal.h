/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share: the objects, who may change what, and how they end.
 *
 *   nfs_session      one client connection: decodes, pauses, closes          session.c
 *   nfs_exchange     one call, from its first byte to its reply's last       call.c, refuse.c
 *   nfs_binding      a session's calls in flight and server connections      binding.c
 *   nfs_server_conn  one server connection: connects, sends calls in order   server_conn.c
 *                    and passes replies on                                   reply.c
 *   nfs_worker       memory, and bindings without a session                  worker.c
 *
 * The road of a call, with the file that takes each step:
 *
 *   session: record ──> call: parse, classify ──> gate ──> call: dispatched ──> server_conn: queue,
 * send │ seen before: attach    └─> refuse: say "later", hold, or close          │ └ malformed:
 * answer                  call: done <── reply: match, pass on <┘
 *
 * Bytes of a call before it is sent are either in the loop's arena (`arena`, until the loop
 * settles) or in blocks of its own (`blocks`): whatever is not sent when the loop settles is
 * copied. What comes behind the blocks while the call still waits is appended; once all of them are
 * sent, pieces pass by reference.
 *
 * A client that goes away takes the calls that wait along; those the server has stay in the
 * binding, now an orphan, until they are answered or NFS_ORPHAN_NS have passed. The same client
 * (address and port) gets its binding back, and a retransmission of a call that is still in flight
 * is attached to it instead of being executed twice. This works within one worker; a client that
 * comes back to another one relies on the server's duplicate request cache.
 *
 * A server connection that ends while calls are unanswered ends their client connections too: the
 * clients know best what to send again. With nothing unanswered it is simply made again when it is
 * needed, from the same port.
 *
 * All of this belongs to one loop's thread.
 */
#ifndef SPILLWAY_NFS_INTERNAL_H
#define SPILLWAY_NFS_INTERNAL_H

#include "protocols/rpc/rpc_message.h"
#include "proxy/core/container_of.h"
#include "proxy/core/gate.h"
#include "proxy/io/alarm.h"
#include "proxy/nfs/nfs.h"
#include "proxy/nfs/record.h"
#include "proxy/nfs/xid_table.h"

/* Backlogs above which the source of the bytes is paused. */
#define NFS_SERVER_BACKLOG_BYTES (UINT32_C(512) << 10)
#define NFS_CLIENT_BACKLOG_BYTES (UINT32_C(1) << 20)

#define NFS_ORPHAN_NS     UINT64_C(10000000000)
#define NFS_LINGER_NS     UINT64_C(2000000000) /* for the client to close after our FIN */
#define NFS_LOOK_NS       UINT64_C(1000000000) /* how often a silent client's connection is looked at */
#define NFS_HOLD_RETRY_NS UINT64_C(50000000)
#define NFS_SAME_XID_MAX                                                                           \
    64 /* calls with one xid in flight on one connection; more is no client's need */

struct nfs_exports;
struct nfs_mount_ports;
struct nfs_session;

/* ------------------------------------------------------------------ memory (worker.c) */

/* Bytes that wait. */
struct nfs_block {
    TAILQ_ENTRY(nfs_block) link;
    size_t capacity; /* of the block as allocated, this head included */
    size_t length;
    uint8_t bytes[];
};
TAILQ_HEAD(nfs_blocks, nfs_block);

TAILQ_HEAD(nfs_exchange_list, nfs_exchange);
TAILQ_HEAD(nfs_binding_list, nfs_binding);

struct nfs_worker {
    struct worker *worker;
    struct loop *loop;
    struct nfs_exchange_list free_exchanges; /* by session_link */
    unsigned free_count;
    struct nfs_exchange_list in_arena; /* by arena_link: their bytes are in the loop's arena */
    struct nfs_blocks sent; /* may still be referred to by connections until the loop settles */
    struct turn_hook reset;
    struct nfs_binding_list orphans;
    struct nfs_exports *exports; /* of the whole process */
    struct nfs_mount_ports *mount_ports;
    uint32_t secret; /* of the xid tables */
};

struct nfs_exchange *nfs_exchange_take(struct nfs_worker *nfs, uint64_t arrived_ns);
/* In no list or table, with no bytes, READING. */
void nfs_exchange_give(struct nfs_worker *nfs, struct nfs_exchange *e);

void nfs_blocks_append(struct nfs_worker *nfs, struct nfs_blocks *blocks, const uint8_t *bytes,
                       size_t length);
/* The first block was given to a connection by reference: it is freed when the loop settles. */
void nfs_blocks_first_sent(struct nfs_worker *nfs, struct nfs_blocks *blocks);
void nfs_blocks_clear(struct nfs_worker *nfs, struct nfs_blocks *blocks);

/* The exchange's bytes are `bytes` in the arena. */
void nfs_arena_enter(struct nfs_worker *nfs, struct nfs_exchange *e, const uint8_t *bytes,
                     size_t length);
/* Forgets them: they were sent or are not wanted. */
void nfs_arena_leave(struct nfs_worker *nfs, struct nfs_exchange *e);
/* Makes them the exchange's own. */
void nfs_arena_copy(struct nfs_worker *nfs, struct nfs_exchange *e);

/* ------------------------------------------------------------------ exchanges (call.c, refuse.c)
 */

/*
 * One call and its reply; or, with `backchannel`, a record that only has to keep its place among
 * the others (a client's reply to a server's call).
 *
 * It is freed when nothing needs it: not `in_gate` (from gate_submit to refused or released), not
 * `receiving` (the session still gets pieces of it), not on a server connection (`conn`).
 */
struct nfs_exchange {
    struct exchange exchange;
    struct nfs_xid_entry entry;
    struct nfs_worker *nfs;
    struct nfs_binding *binding; /* whose table it is in; NULL: in none */
    struct nfs_session *session; /* who gets the reply; NULL: nobody */
    struct nfs_server_conn *conn;
    TAILQ_ENTRY(nfs_exchange) session_link; /* session->calls, or free */
    TAILQ_ENTRY(nfs_exchange) conn_link;    /* conn->calls, or session->held */
    TAILQ_ENTRY(nfs_exchange) arena_link;

    const uint8_t *arena; /* NULL: nothing there */
    size_t arena_bytes;
    struct nfs_blocks blocks;
    uint64_t waiting_bytes; /* in either */
    uint64_t known_bytes;   /* payload of the record, or RPC_RECORD_UNKNOWN */
    struct nfs_framing framing;

    bool marked : 1;    /* the bytes are a whole record with its mark */
    bool complete : 1;  /* the whole record has come */
    bool receiving : 1; /* session->receiving is this one */
    bool in_gate : 1;
    bool held : 1;  /* on session->held */
    bool begun : 1; /* some of it went to the server */
    bool done : 1;  /* answered, refused or given up: what still comes of it only keeps the stream
                       whole */
    bool replying : 1; /* its reply is on its way in pieces */
    bool backchannel : 1;
    bool args_visible : 1;
    bool gss : 1; /* a reply needs the server's signature: we can't make one */

    uint32_t prog, vers, proc;
    uint32_t minor;       /* NFSv4: minor version */
    uint32_t body_offset; /* of the arguments, in the payload */
    uint32_t status;      /* of the reply, for the access log */
    const char *operation;
    char *mount_path; /* of MNT and UMNT, else NULL */
};

/* A record, or its first piece, has come from the client. May close the session. */
void nfs_call_whole(struct nfs_session *s, uint8_t *record, size_t length);
void nfs_call_first_piece(struct nfs_session *s, const struct nfs_piece *piece);
/* More of session->receiving. */
void nfs_call_next_piece(struct nfs_session *s, const struct nfs_piece *piece);

/*
 * The server's part of a dispatched call is over: it leaves its table and session, frees its slot,
 * and is logged as having ended by `end`. If it is still being sent it stays on its connection
 * until it was.
 */
void nfs_call_done(struct nfs_exchange *e, enum outcome outcome, const char *end);
/* Its session ends. It is dropped if the server has not got anything of it yet. */
void nfs_call_abandon(struct nfs_exchange *e);
/* Leaves table and session: nobody waits for it any more. */
void nfs_call_forget(struct nfs_exchange *e);
/* Leaves the session alone: the server still works on it. */
void nfs_call_leave_session(struct nfs_exchange *e);
/* Its reply goes to this session. */
void nfs_call_enter_session(struct nfs_exchange *e, struct nfs_session *s);
/* Frees it if nothing needs it any more. */
void nfs_call_settle(struct nfs_exchange *e);
void nfs_call_log(const struct nfs_exchange *e, const char *end);
/* Bytes that wait: `added` came (negative: went). */
void nfs_call_wait_bytes(struct nfs_exchange *e, int64_t added);

/* exchange_ops. */
void nfs_call_dispatched(struct exchange *exchange);
void nfs_call_released(struct exchange *exchange);
/* The third: the protocol's word for "later", or none and another try, or the connection's end. */
void nfs_call_refused(struct exchange *exchange, enum refusal refusal);
/* Its client is to be slowed down. */
void nfs_call_marked(struct exchange *exchange);
/* Submits the session's held calls again; true: there were any. */
bool nfs_call_retry_held(struct nfs_session *s);
/* The one that was held first alone; a place may have become free. */
bool nfs_call_retry_first_held(struct nfs_session *s);

/* ------------------------------------------------------------------ sessions (session.c) */

enum nfs_session_state {
    NFS_SESSION_OPEN,
    NFS_SESSION_HALF_CLOSED, /* the client said its last: gets the replies that the server works on
                              */
    NFS_SESSION_DRAINING,    /* takes no new calls, closes after those in flight */
    NFS_SESSION_LINGERING,   /* everything was said, a FIN sent: waits for the client's */
    NFS_SESSION_CLOSED,
};

/* Why a client is not read from. */
enum nfs_pause {
    NFS_PAUSE_READ_AHEAD = 1, /* enough of its calls wait */
    NFS_PAUSE_SERVER = 2,     /* the server does not take them fast enough */
    NFS_PAUSE_HELD = 4,       /* the queue is full and there is no word for it */
    NFS_PAUSE_DRAIN = 8,
    NFS_PAUSE_MARK = 16, /* admission slows it down: nfs_session_slow() */
};

struct nfs_session {
    struct session session;
    struct nfs_worker *nfs;
    struct nfs_binding *binding;
    struct nfs_incoming incoming;
    struct nfs_exchange
        *receiving; /* whose pieces come; NULL while a record comes: it is dropped */
    struct nfs_exchange_list calls; /* that it waits for, by session_link */
    struct nfs_exchange_list held;  /* to be submitted again, by conn_link; in `calls` too */
    /* A reply is passed on in pieces: no other bytes may go to the client until it has ended. */
    struct nfs_server_conn *streaming;
    struct nfs_blocks after_stream; /* whole records that came meanwhile */
    uint64_t waiting_bytes;         /* of its calls */
    uint64_t read_ahead_bytes;
    uint8_t state;
    uint8_t pauses;               /* enum nfs_pause, added up */
    struct timer receive_timer;   /* in the middle of a record, or lingering */
    uint64_t receive_deadline_ns; /* for the next piece of a record */
    struct timer stall_timer;     /* the client takes nothing */
    struct timer retry_timer;     /* held calls */
    struct alarm mark_alarm;      /* when NFS_PAUSE_MARK ends */
    uint64_t stall_sent_bytes;    /* what it had taken when stall_timer was set */
};

extern const struct session_ops nfs_session_ops;

static inline const struct sockaddr *nfs_session_client(const struct nfs_session *s)
{
    return (const struct sockaddr *)&s->session.client;
}

/* A whole record to the client. By reference (until the loop settles), or copied. */
void nfs_session_send(struct nfs_session *s, const uint8_t *record, size_t length);
void nfs_session_send_copy(struct nfs_session *s, const uint8_t *record, size_t length);
/* The client takes more, or not: watches that. Called after sending. */
void nfs_session_watch(struct nfs_session *s);

/* A server connection begins to pass a reply on in pieces. False: another one is at it. */
bool nfs_session_begin_stream(struct nfs_session *s, struct nfs_server_conn *c);
void nfs_session_end_stream(struct nfs_session *s);

void nfs_session_pause(struct nfs_session *s, enum nfs_pause reason);
void nfs_session_resume(struct nfs_session *s, enum nfs_pause reason);
/* Does not read from the client for so long from now; of several such pauses the last to end
 * counts. What was read already goes on, and nothing is lost: the client's window fills. */
void nfs_session_slow(struct nfs_session *s, uint64_t duration_ns);

/* Ends it now, or when the client has taken what was sent. Its calls are abandoned. Nothing if it
 * has ended. */
void nfs_session_close(struct nfs_session *s);
void nfs_session_finish(struct nfs_session *s);
/* Its server takes no more: what the server has got is answered, the rest given up, then it ends.
 */
void nfs_session_wind_down(struct nfs_session *s);
/* A call has left it: a draining one may be through. */
void nfs_session_call_left(struct nfs_session *s);

/* A peer that vanished without a word is noticed, in minutes. */
void nfs_keep_alive(int fd);

/* For log lines: "192.0.2.1:700". */
#define NFS_ADDRESS_TEXT_BYTES 64
const char *nfs_address_text(const struct sockaddr *address, char text[NFS_ADDRESS_TEXT_BYTES]);

/* ------------------------------------------------------------------ bindings (binding.c) */

enum nfs_conn_role {
    NFS_CONN_MAIN,
    NFS_CONN_MOUNT, /* only where the MOUNT service has a port of its own */
    NFS_CONN_ROLES,
};

struct nfs_binding {
    struct nfs_worker *nfs;
    struct nfs_session *session; /* NULL: an orphan, on nfs->orphans */
    struct pool *pool;
    struct lane *lane;
    bool lane_is_chosen;                           /* false: none was usable, ask again */
    struct nfs_server_conn *conns[NFS_CONN_ROLES]; /* made when needed */
    struct nfs_xid_table calls;
    struct rpc_record_limits limits;
    struct sockaddr_storage client;
    unsigned listener;
    bool is_orphan, closed;
    TAILQ_ENTRY(nfs_binding) link;
    struct timer orphan_timer;
    struct deferred deferred;
};

/* A new session's binding: that of its orphaned predecessor, or a new one. */
struct nfs_binding *nfs_binding_take(struct nfs_session *s, struct pool *pool);
/* The lane for the next call, for a pool that a reload may have changed. */
struct lane *nfs_binding_lane(struct nfs_binding *b, struct pool *pool);
/* The session has ended. */
void nfs_binding_leave(struct nfs_binding *b);
/* A call has left: an orphan that has none left is closed. */
void nfs_binding_settle(struct nfs_binding *b);
void nfs_binding_close(struct nfs_binding *b);
/* For nfs_worker_destroy(). */
void nfs_binding_destroy(struct nfs_binding *b);

enum nfs_duplicate {
    NFS_DUPLICATE_NONE,
    NFS_DUPLICATE_ATTACHED, /* it is in flight and its reply will serve */
    NFS_DUPLICATE_EXCESS,   /* NFS_SAME_XID_MAX calls have this xid */
};
/* Whether a call just received is in flight already. */
enum nfs_duplicate nfs_binding_find_duplicate(struct nfs_session *s, uint32_t xid,
                                              uint64_t checksum);

/* ------------------------------------------------------------------ server connections
 * (server_conn.c) */

enum nfs_conn_state {
    NFS_CONN_CLOSED,
    NFS_CONN_ASKING, /* for the MOUNT service's port */
    NFS_CONN_CONNECTING,
    NFS_CONN_OPEN,
};

enum nfs_reply_mode {
    NFS_REPLY_NONE,    /* between two, or whole ones */
    NFS_REPLY_STREAM,  /* pieces go to reply_session as they come */
    NFS_REPLY_COLLECT, /* another connection streams to it: kept until the end */
    NFS_REPLY_DISCARD, /* nobody wants it */
};

struct nfs_server_conn {
    struct conn conn;
    struct nfs_binding *binding;
    struct server *server;
    uint8_t role;
    uint8_t state;
    /*
     * In the order of sending. Up to `unsent` they are sent and wait for their reply, `unsent` is
     * being sent if it has begun, the others wait for it.
     */
    struct nfs_exchange_list calls;
    struct nfs_exchange *unsent;

    struct nfs_incoming incoming;
    uint8_t reply_mode;
    struct nfs_exchange *replying; /* NULL: the server's call to the client, or unknown */
    struct nfs_session *reply_session;
    struct nfs_framing reply_framing;
    struct nfs_blocks collected;
    uint64_t reply_bytes;
    struct nfs_session *paused_for; /* whose backlog is too long */

    struct timer timer;  /* connecting, or in the middle of a reply */
    uint64_t connect_ns; /* the limits of both */
    uint64_t idle_ns;
    bool reserved_port;
    uint16_t source_port; /* to come from again; 0: any */
    uint32_t mount_port;  /* as in config_server; SAME: the endpoint's */
    unsigned endpoint;    /* tried now, or the one that worked */
    unsigned tried;
    TAILQ_ENTRY(nfs_server_conn) ask_link; /* waiting for the MOUNT port */
};

/* A dispatched exchange, or a backchannel record, to the server. */
void nfs_server_conn_send(struct nfs_binding *b, struct nfs_exchange *e);
void nfs_server_conn_send_backchannel(struct nfs_binding *b, struct nfs_exchange *e);
/* More of `e` has come, or it may be its turn. */
void nfs_server_conn_pump(struct nfs_server_conn *c);
/* Passes on a piece of an exchange at once if it is its turn; false: it has to wait in the
 * exchange. */
bool nfs_server_conn_pass(struct nfs_server_conn *c, struct nfs_exchange *e, const uint8_t *bytes,
                          size_t length);
/* Takes an exchange off it. */
void nfs_server_conn_remove(struct nfs_server_conn *c, struct nfs_exchange *e);
/*
 * It ended, or has to (why: for the log). Its unanswered calls end as failed, or as aborted where
 * it is the client's doing, and their sessions with them.
 */
void nfs_server_conn_lost(struct nfs_server_conn *c, enum outcome outcome, const char *why);
/* The answer for a connection that waits: 0 when there is none. */
void nfs_server_conn_mount_port(struct nfs_server_conn *c, uint16_t port);
void nfs_server_conn_close(struct nfs_server_conn *c);

/* Bytes from the server (reply.c). */
void nfs_reply_readable(struct conn *conn, uint8_t *bytes, size_t length);
/* The session has ended or has taken its backlog. */
void nfs_reply_forget_session(struct nfs_server_conn *c, struct nfs_session *s);
void nfs_reply_resume(struct nfs_server_conn *c, struct nfs_session *s);

/*
 * The kernel does not take what it is given and more than `limit` bytes wait; `drained` will be
 * called. Bytes that were only queued in this turn don't count: nothing says yet that they will not
 * go.
 */
static inline bool nfs_conn_is_stalled(const struct conn *conn, size_t limit)
{
    return conn->blocked && !conn->connecting && conn_backlog(conn) > limit;
}

/* ------------------------------------------------------------------ MOUNT ports (mount_port.c) */

struct nfs_mount_ports *nfs_mount_ports_create(struct loop *loop);
void nfs_mount_ports_destroy(struct nfs_mount_ports *ports);
/*
 * The port of a server's MOUNT service by its portmapper. > 0: known. 0: asked;
 * nfs_server_conn_mount_port(c) will be called. -errno: can't ask. The answer is kept until
 * nfs_mount_ports_forget().
 */
int nfs_mount_ports_get(struct nfs_mount_ports *ports, struct server *server,
                        struct nfs_server_conn *c, uint64_t timeout_ns);
void nfs_mount_ports_forget(struct nfs_mount_ports *ports, const struct server *server);
/* `c` does not wait any more. */
void nfs_mount_ports_cancel(struct nfs_mount_ports *ports, struct nfs_server_conn *c);

#endif
