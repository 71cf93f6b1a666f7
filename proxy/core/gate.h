/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: where exchanges wait in front of a pool.
 *
 * A loop talks to a gate in batches: gate_submit() and gate_finish() only append to the loop's
 * side; when the loop settles, the gate's pump takes the lock once, ends what has finished, queues
 * or refuses what is new, and dispatches as long as the scheduler names a request and a server has
 * room. Dispatches of other loops' exchanges are handed to them in one batch each.
 *
 * Depth: a server never has more than its depth outstanding, the pool never more than its total (if
 * set). In units of cost the last request sent may exceed it: a server with any room left takes the
 * next one whole. A server that failed `dead_after` times in a row gets nothing for `dead_for`;
 * then one request tries it.
 *
 * Under an algorithm that holds requests until a time, one loop has a timer set for the earliest of
 * these (gate/gate_internal.h).
 */
#ifndef SPILLWAY_CORE_GATE_H
#define SPILLWAY_CORE_GATE_H

#include "proxy/core/pool/pool.h"

/* The exchange has pool, lane, class, key and cost (see plan_classify). READING -> SUBMITTED. */
void gate_submit(struct exchange *exchange);

/*
 * Ends a DISPATCHED exchange: its slot is freed when the loop settles. `true_cost` corrects what
 * was charged (exchange->cost when there is nothing better). ops->released follows.
 */
void gate_finish(struct exchange *exchange, enum outcome outcome, uint64_t true_cost);

/*
 * The owner gives up an exchange that is SUBMITTED, QUEUED or on its way to `dispatched`. True: it
 * has left the gate and is the owner's again. False: a dispatch is under way; `released` will be
 * called in its stead and the owner must forget it now. Counted as cancelled.
 */
bool gate_cancel(struct exchange *exchange);

enum gate_moved {
    GATE_MOVED, /* it holds a slot of exchange->server, another one where possible: send it there */
    GATE_QUEUED, /* every usable server is full: it waits at the head of its flow; `dispatched` will
                    come */
    GATE_NOWHERE, /* no server is usable; it still holds its slot: finish it as failed */
};

/*
 * The server of a DISPATCHED exchange did not take it: connecting failed, or the connection turned
 * out closed. Finds it another place.
 */
enum gate_moved gate_move(struct exchange *exchange);

/* For an exchange with `owner_counts`: its owner has refused it for good. */
void gate_count_refusal(struct exchange *exchange, enum refusal refusal);

/* The request is sent to the same server again, on a fresh connection. */
void gate_count_retry(struct server *server);

/* A connection attempt's result, for the server's health. */
void gate_server_connected(struct server *server);
void gate_server_failed(struct server *server, uint64_t now_ns);

/* For NFS: the lane a new client connection is bound to; stable for a client address. NULL: none
 * usable. */
struct lane *gate_choose_lane(struct pool *pool, const struct sockaddr *client, uint64_t now_ns);

/* Pumps from outside a turn (a change of depth, weight, state): any thread. */
void gate_kick(struct pool *pool);

/* Recomputes a lane's depth from its servers; under the lock. */
void gate_update_depth(struct lane *lane, uint64_t now_ns);

/* Whether the server may get requests at all; under the lock. */
bool gate_server_is_usable(const struct server *server, uint64_t now_ns);

/* Readies the pump of one loop's side. */
void gate_side_init(struct gate_side *side, struct pool *pool, struct loop *loop,
                    unsigned loop_count);

/* Frees what the side has; its loop is gone. */
void gate_side_fini(struct gate_side *side);

#endif
