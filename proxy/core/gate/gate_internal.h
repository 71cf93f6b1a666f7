/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the gate share: gate_pump.c (requests on their way through), gate_admission.c
 * (which may wait), gate_servers.c (where they go), gate_wake.c (requests that become due by the
 * passing of time). Everything is called under the pool's lock, unless it says otherwise.
 */
#ifndef SPILLWAY_CORE_GATE_GATE_INTERNAL_H
#define SPILLWAY_CORE_GATE_GATE_INTERNAL_H

#include "proxy/core/gate.h"

/* The server for the next request of the lane, or NULL when none has room; `other` is avoided if
 * there is any choice. */
struct server *gate_choose_server(struct lane *lane, const struct server *other, uint64_t now_ns);

/* No server of the lane is usable. */
bool gate_lane_is_out(struct lane *lane, uint64_t now_ns);

/* The exchange's place at the server. */
void gate_take_slot(struct exchange *exchange, struct server *server);
void gate_give_slot(struct exchange *exchange);

bool gate_pool_has_room(const struct pool *pool);

/*
 * Admission (gate_admission.c). `refused` receives what is put out of the pumping loop's own
 * requests; those of other loops are handed over to them.
 */

/* What the request counts for in the lane's struct admit. */
uint64_t gate_admission_cost(const struct exchange *exchange);

/* The request was just queued: whether it may stay, perhaps in the place of another. False: the
 * caller puts it out. */
bool gate_may_join(struct gate_side *side, struct exchange *exchange, struct exchange_list *refused,
                   uint64_t now_ns);

/* The request has left the queue for a server: whether it may go there. False: it is refused. */
bool gate_may_go(struct gate_side *side, struct exchange *exchange, struct exchange_list *refused,
                 uint64_t now_ns);

/* The pool's queue is full: puts out a request of a flow that exceeds its share more than this one
 * would. False: there is none. */
bool gate_make_room(struct gate_side *side, struct exchange *exchange,
                    struct exchange_list *refused, uint64_t now_ns);

/* A QUEUED request is refused; lane->admit has been told (gate_pump.c). */
void gate_put_out(struct gate_side *side, struct exchange *exchange, enum refusal refusal,
                  struct exchange_list *refused, uint64_t now_ns);

/*
 * Time of the pool's events: loops read their clocks at different moments, and a scheduler's time
 * must not go back.
 */
uint64_t gate_advance_clock(struct pool *pool, uint64_t now_ns);

/*
 * Wake-ups. Some algorithms hold a request until a time, and then nothing else may happen that
 * would pump. Rules:
 *   - after each pump of any loop, pool->wake_ns is not after the earliest time at which one of its
 *     lanes has a request due and a place for it; some loop of the pool has a timer set for
 *     pool->wake_ns and pumps when it fires;
 *   - a pump at or after pool->wake_ns does what that timer is for, and clears it.
 * So no wake-up is lost whoever pumps, and only one loop wakes up unless the time has to be moved
 * forward.
 */

/* At a pump's beginning. */
void gate_wake_clear(struct pool *pool, uint64_t now_ns);

/* At its end: the time that the pumping loop's timer has to be set for, by gate_wake_arm() after
 * the lock; SCHED_NEVER_NS: none. */
uint64_t gate_wake_needed(struct pool *pool, uint64_t now_ns);

/* Without the lock, on the side's own thread. */
void gate_wake_arm(struct gate_side *side, uint64_t wake_ns);

/* Readies a side's alarm. */
void gate_wake_init(struct gate_side *side);

#endif
