/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol-independent part of an exchange: see exchange.h. */
#include "proxy/core/pool/exchange.h"

#include <string.h>

void exchange_init(struct exchange *exchange, struct loop *loop, const struct exchange_ops *ops,
                   uint64_t arrived_ns)
{
    sched_item_init(&exchange->item);
    exchange->message.next = NULL;
    exchange->ops = ops;
    exchange->loop = loop;
    exchange->pool = NULL;
    exchange->lane = NULL;
    exchange->class = NULL;
    exchange->flow = NULL;
    exchange->server = NULL;
    exchange->state = EXCHANGE_READING;
    exchange->abandoned = false;
    exchange->owner_counts = false;
    exchange->insists = false;
    exchange->key_length = 0;
    exchange->cost = 1;
    exchange->cost_base = 1;
    exchange->cost_per_size = 0;
    exchange->said_cost = 0;
    exchange->operation = 0;
    exchange->bytes_in = 0;
    exchange->bytes_out = 0;
    exchange->arrived_ns = arrived_ns;
    exchange->queued_ns = 0;
    exchange->dispatched_ns = 0;
    exchange->finished_ns = 0;
    exchange->mark = EXCHANGE_UNMARKED;
    exchange->retry_after_ns = 0;
    exchange->mark_ns = 0;
}
