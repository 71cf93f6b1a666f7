/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP sender of a fixed number of segments: which segment may go next, and what an
 * acknowledgement, a mark or a timeout changes. No network and no clock: both are the caller's.
 *
 *     tcp_begin(&tcp, rtt_ns, now_ns)
 *     while (tcp_send(&tcp, now_ns, &sent)) { put sent on the wire }
 *     an acknowledgement:  tcp_acked(&tcp, &sent, marked, now_ns), then send again
 *     tcp.deadline_ns:     tcp_timeout(&tcp, now_ns), then send again
 *     until tcp_done(&tcp)
 *
 *                  tcp_send                 its acknowledgement
 *     (new) ──────────────────► IN_FLIGHT ───────────────────────► ACKED
 *                                │     ▲                             ▲
 *     3 sent later are acked, or │     │ tcp_send                    │ (it was late)
 *     a timeout                  ▼     │                             │
 *                                LOST ─┴─────────────────────────────┘
 *
 * What is simulated and what is not
 *   Every segment is acknowledged at once and says which transmission it answers (selective
 *   acknowledgement and time stamps); acknowledgements are not lost. A transmission is lost when
 *   three sent after it are acknowledged, retransmissions included (the order of transmissions
 *   tells, as in RFC 8985; that RFC's reordering window and tail probe are not simulated). The
 *   window is reduced at most once per window of data, for losses and marks together (RFC 6675,
 *   3168). The timeout is RFC 6298's, doubled each time, at least 200 ms.
 *
 * Invariants: in_flight and lost count the segments in those states; segments below `acked_to` are
 * ACKED, those from `next` on are new.
 */
#ifndef BENCH_SIM_LINK_TCP_H
#define BENCH_SIM_LINK_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/sim/link/cubic.h"

#define TCP_NEVER          UINT64_MAX
#define TCP_TIMEOUT_MIN_NS 200000000ULL
#define TCP_TIMEOUT_MAX_NS 60000000000ULL

enum tcp_state { TCP_NEW, TCP_IN_FLIGHT, TCP_LOST, TCP_ACKED };

struct tcp_segment {
    enum tcp_state state;
    uint8_t passed; /* transmissions after it that were acknowledged */
    uint32_t order; /* of its last transmission */
};

/* A transmission. */
struct tcp_sent {
    uint32_t segment;
    uint32_t order;
    uint64_t time_ns;
};

struct tcp {
    struct tcp_segment *segments;
    uint32_t count;
    double initial_window;
    struct cubic cubic;
    uint32_t next; /* the first that was never sent */
    uint32_t acked_to;
    uint32_t in_flight;
    uint32_t lost;
    uint32_t order;      /* transmissions so far */
    uint32_t reduced_at; /* transmissions before this one belong to a window that was reduced */
    uint32_t recover_to; /* no growth until all before this segment is acknowledged */
    uint64_t rtt_ns;     /* smoothed */
    uint64_t rtt_deviation_ns;
    uint64_t timeout_ns;
    uint64_t deadline_ns; /* TCP_NEVER: nothing is outstanding */
    /* of this connection */
    uint32_t retransmitted;
    uint32_t reductions;
    uint32_t timeouts;
};

/* tcp_fini frees what tcp_init allocated. `count` is 1 at least. */
void tcp_init(struct tcp *tcp, uint32_t count, double initial_window);
void tcp_fini(struct tcp *tcp);

/* A new connection, whose set-up took rtt_ns. */
void tcp_begin(struct tcp *tcp, uint64_t rtt_ns, uint64_t now_ns);

/* The next segment, when the window has room and there is one: it counts as sent. */
bool tcp_send(struct tcp *tcp, uint64_t now_ns, struct tcp_sent *out);

/* A transmission of this connection was acknowledged; `marked`: the network marked it. */
void tcp_acked(struct tcp *tcp, const struct tcp_sent *sent, bool marked, uint64_t now_ns);

/* The deadline passed. */
void tcp_timeout(struct tcp *tcp, uint64_t now_ns);

static inline bool tcp_done(const struct tcp *tcp)
{
    return tcp->acked_to == tcp->count;
}

#endif
