/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request counts for: an estimate when it comes, the truth when it has ended.
 *
 * by            estimate                              truth
 * ------------  ------------------------------------  ------------------------------------------
 * request       1                                     1
 * bytes         from the bytes it announces           from the bytes of request and reply
 * table         by operation, and announced bytes     by operation, and bytes of both
 * header        request-header; without that key the  reply-header; the estimate where that key
 *               running mean of what replies said     or the field is missing
 * service-time  running mean of the measured time     time from dispatch to end
 *
 * The difference goes to the flow's next requests (sched_complete), so shares follow the truth and
 * the estimate decides no more than in which order the next few go.
 *
 * Running means are kept per declared flow and operation (a flow made per key has those of its
 * declaration): an HTTP method, an NFSv3 procedure, or the class of an NFSv4 compound. Of n samples
 * the last counts 1/16, the one before 15/256 and so on. An operation without a sample takes the
 * mean of all of its flow's; a flow without one takes the configured fallback.
 *
 * Threads: estimates are made on any loop without a lock, so the means are atomic; when two loops
 * add a sample at the same time one of the two may be lost, which a mean can bear.
 */
#ifndef SPILLWAY_CORE_POOL_COST_H
#define SPILLWAY_CORE_POOL_COST_H

#include "protocols/http/http1.h"
#include "proxy/config/config.h"
#include "proxy/core/pool/exchange.h"

#include <stdatomic.h>

struct http_facts;
struct nfs_facts;

/* Operations with a mean of their own; 0 stands for all of them together. */
#define COST_NFS_OPERATIONS (CONFIG_NFS3_PROCEDURES + CONFIG_CLASS_COUNT)
#define COST_OPERATIONS                                                                            \
    (1 + ((int)HTTP1_METHOD_COUNT > (int)COST_NFS_OPERATIONS ? (int)HTTP1_METHOD_COUNT             \
                                                             : (int)COST_NFS_OPERATIONS))

/* Running means by operation, in 2^-COST_MEAN_SHIFT of what was added; 0: no sample. Zeroed memory
 * is an empty one. */
#define COST_MEAN_SHIFT  8
#define COST_MEAN_WEIGHT 16 /* the newest sample counts one part in this many */
struct cost_history {
    atomic_uint_least64_t means[COST_OPERATIONS];
};

/* Adds a sample, counted as at most 2^48, to the operation's mean and to that of all. */
void cost_history_add(struct cost_history *history, unsigned operation, uint64_t sample);

/* The mean for the operation, rounded; 0 when there is no sample at all. */
uint64_t cost_history_mean(const struct cost_history *history, unsigned operation);

/*
 * Whole number from 1 to `max` out of the one field of that name (any case), which must be decimal
 * digits alone; a larger one, of however many digits, is `max`. 0 when the field is missing, is
 * there more than once or holds anything else.
 */
uint32_t cost_in_head(const struct http1_head *head, const char *name, uint32_t max);

/*
 * Sets exchange->cost and what cost_settle() needs. The exchange has its pool and class. `rate` is
 * the operation's by the table.
 */
void cost_estimate_http(struct exchange *exchange, const struct http1_head *head,
                        struct config_cost_rate rate);
void cost_estimate_nfs(struct exchange *exchange, const struct nfs_facts *facts);

/* Looks at the final head of a server's reply for what the request has cost. */
void cost_read_reply(struct exchange *exchange, const struct http1_head *head);

/*
 * The truth about a dispatched exchange that ends now, for gate_finish(); a measurement goes into
 * the running mean. bytes_in and bytes_out are what has moved. At least 1.
 */
uint64_t cost_settle(const struct exchange *exchange, enum outcome outcome);

#endif
