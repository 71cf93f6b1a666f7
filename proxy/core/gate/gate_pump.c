/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's pump and its neighbours: see ../gate.h for what they promise. */
#include "proxy/core/gate/gate_internal.h"

#include "proxy/core/container_of.h"
#include "proxy/io/memory.h"

#include <stdlib.h>
#include <string.h>

#define RETIRE_PER_PUMP 32

static void on_dispatch_message(struct loop *loop, struct loop_message *message);
static void on_queue_timeout(struct timer *timer, uint64_t now_ns);

static struct gate_side *side_of(const struct exchange *exchange)
{
    return &exchange->lane->pool->sides[exchange->loop->index];
}

void gate_submit(struct exchange *exchange)
{
    struct gate_side *side = side_of(exchange);

    exchange->state = EXCHANGE_SUBMITTED;
    exchange->message.run = on_dispatch_message;
    timer_init(&exchange->queue_timer, on_queue_timeout);
    STAILQ_INSERT_TAIL(&side->submitted, exchange, submit_link);
    loop_add_pump(exchange->loop, &side->hook);
}

void gate_finish(struct exchange *exchange, enum outcome outcome, uint64_t true_cost)
{
    struct gate_side *side = side_of(exchange);

    exchange->state = EXCHANGE_FINISHED;
    exchange->outcome = (uint8_t)outcome;
    exchange->true_cost = true_cost;
    exchange->finished_ns = loop_now_ns(exchange->loop);
    STAILQ_INSERT_TAIL(&side->finished, exchange, link);
    loop_add_pump(exchange->loop, &side->hook);
}

/* ------------------------------------------------------------------ the pump */

/* What the pump found for its own loop to do after the lock. */
struct pump_result {
    struct exchange_list refused;
    struct exchange_list dispatched;
    struct exchange_list released;
    struct exchange_list marked; /* that wait, by submit_link */
    uint64_t wake_ns;
    bool more_to_retire; /* keyed flows, for the next pump */
};

static void count_flow(struct flow_meters *meters, const struct exchange *exchange)
{
    if (exchange->outcome == OUTCOME_ANSWERED)
        meters->requests++;
    else if (exchange->outcome == OUTCOME_FAILED)
        meters->errors++;
    else
        meters->cancelled++;
    meters->cost += exchange->true_cost;
    meters->bytes_in += exchange->bytes_in;
    meters->bytes_out += exchange->bytes_out;
    histogram_add(&meters->wait, exchange->dispatched_ns - exchange->queued_ns);
    if (exchange->outcome == OUTCOME_ANSWERED)
        histogram_add(&meters->service, exchange_service_ns(exchange, exchange->finished_ns));
}

static void count_server(struct server_meters *meters, const struct exchange *exchange)
{
    if (exchange->outcome == OUTCOME_ANSWERED) {
        meters->requests++;
        histogram_add(&meters->service, exchange_service_ns(exchange, exchange->finished_ns));
    } else if (exchange->outcome == OUTCOME_FAILED) {
        meters->errors++;
    }
    meters->cost += exchange->true_cost;
    meters->bytes_in += exchange->bytes_in;
    meters->bytes_out += exchange->bytes_out;
}

static void end_exchange(struct pool *pool, struct exchange *exchange)
{
    uint64_t now_ns = gate_advance_clock(pool, exchange->finished_ns);

    gate_give_slot(exchange);
    pool->outstanding--;
    pool->outstanding_cost -= exchange->cost;
    exchange->class->outstanding--;
    sched_complete(exchange->lane->sched, &exchange->item, exchange->true_cost, now_ns);
    admit_complete(&exchange->lane->admit, gate_admission_cost(exchange), now_ns);
    count_flow(&exchange->class->meters, exchange);
    count_server(&exchange->server->meters, exchange);
    pool_flow_ended(exchange);
}

static void count_refusal(struct flow_meters *meters, enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_FLOW_FULL:
    case REFUSAL_POOL_FULL:
        meters->refused++;
        break;
    case REFUSAL_TIMEOUT:
        meters->queue_timeouts++;
        break;
    case REFUSAL_NO_SERVER:
        meters->no_server++;
        break;
    case REFUSAL_AT_LIMIT:
        meters->at_limit++;
        break;
    case REFUSAL_ADMISSION:
        meters->admission_refused++;
        break;
    }
}

static void note_refusal(struct exchange *exchange, enum refusal refusal)
{
    exchange->state = EXCHANGE_READING;
    exchange->refusal = (uint8_t)refusal;
    exchange->retry_after_ns = admit_retry_after_ns(&exchange->lane->admit);
    if (!exchange->owner_counts)
        count_refusal(&exchange->class->meters, refusal);
}

bool gate_pool_has_room(const struct pool *pool)
{
    if (pool->depth == 0)
        return true;
    return (pool->depth_unit == CONFIG_DEPTH_COST ? pool->outstanding_cost : pool->outstanding) <
           pool->depth;
}

static void hand_over(struct gate_side *side, struct exchange *exchange)
{
    struct gate_batch *batch = &side->batches[exchange->loop->index];

    exchange->message.next = NULL;
    if (batch->first == NULL)
        batch->first = &exchange->message;
    else
        batch->last->next = &exchange->message;
    batch->last = &exchange->message;
}

/* It is answered by its own loop: in the next turn, or after this pump's lock. */
static void give_back(struct gate_side *side, struct exchange *exchange,
                      struct exchange_list *refused)
{
    if (exchange->loop == side->loop)
        STAILQ_INSERT_TAIL(refused, exchange, link);
    else
        hand_over(side, exchange);
}

/* A QUEUED request leaves the scheduler. */
static void leave_queue(struct exchange *exchange, uint64_t now_ns)
{
    sched_cancel(exchange->lane->sched, &exchange->item, now_ns);
    exchange->class->queued--;
    pool_flow_ended(exchange);
}

void gate_put_out(struct gate_side *side, struct exchange *exchange, enum refusal refusal,
                  struct exchange_list *refused, uint64_t now_ns)
{
    leave_queue(exchange, now_ns);
    note_refusal(exchange, refusal);
    give_back(side, exchange, refused);
}

/* The scheduler named it, but it goes to no server. */
static void refuse_outstanding(struct gate_side *side, struct exchange *exchange,
                               enum refusal refusal, struct exchange_list *refused, uint64_t now_ns)
{
    sched_complete(exchange->lane->sched, &exchange->item, 0, now_ns);
    note_refusal(exchange, refusal);
    pool_flow_ended(exchange);
    give_back(side, exchange, refused);
}

static bool dispatch_one(struct gate_side *side, struct lane *lane, struct pump_result *result,
                         uint64_t now_ns)
{
    struct pool *pool = lane->pool;

    if (sched_queued(lane->sched) == 0 || !gate_pool_has_room(pool))
        return false;
    struct server *server = gate_choose_server(lane, NULL, now_ns);
    struct sched_item *item = server != NULL ? sched_dispatch(lane->sched, now_ns) : NULL;
    if (item == NULL)
        return false;
    struct exchange *exchange = container_of(item, struct exchange, item);
    exchange->class->queued--;
    class_feedback_waiting(&exchange->class->feedback, now_ns);
    if (!gate_may_go(side, exchange, &result->refused, now_ns)) {
        refuse_outstanding(side, exchange, REFUSAL_ADMISSION, &result->refused, now_ns);
        return true;
    }
    exchange->state = EXCHANGE_DISPATCHED;
    exchange->dispatched_ns = now_ns;
    exchange->class->outstanding++;
    pool->outstanding++;
    pool->outstanding_cost += exchange->cost;
    gate_take_slot(exchange, server);
    give_back(side, exchange, &result->dispatched);
    return true;
}

/* One from each lane in turn, going on where the last time ended: where the pool's total is short,
 * no lane may take all of it. */
static void dispatch(struct gate_side *side, struct pump_result *result, uint64_t now_ns)
{
    struct pool *pool = side->pool;
    struct lane *lane = pool->next_lane != NULL ? pool->next_lane : TAILQ_FIRST(&pool->lanes);
    unsigned without = 0;

    while (without < pool->lane_count) {
        without = dispatch_one(side, lane, result, now_ns) ? 0 : without + 1;
        lane = TAILQ_NEXT(lane, link) != NULL ? TAILQ_NEXT(lane, link) : TAILQ_FIRST(&pool->lanes);
    }
    pool->next_lane = lane;
}

static enum refusal refusal_of(enum sched_verdict verdict)
{
    switch (verdict) {
    case SCHED_FLOW_FULL:
        return REFUSAL_FLOW_FULL;
    case SCHED_AT_LIMIT:
        return REFUSAL_AT_LIMIT;
    case SCHED_TOTAL_FULL:
    case SCHED_OK:
        break;
    }
    return REFUSAL_POOL_FULL;
}

static enum sched_verdict enqueue(struct exchange *exchange, uint64_t now_ns)
{
    return sched_enqueue(exchange->lane->sched, &exchange->flow->sched, &exchange->item,
                         exchange->cost, now_ns);
}

static bool is_full(enum sched_verdict verdict)
{
    return verdict == SCHED_FLOW_FULL || verdict == SCHED_TOTAL_FULL;
}

/* What stands in the queue is what nobody can serve now: a policy judges by that. */
static void dispatch_before(struct gate_side *side, struct lane *lane, struct pump_result *result,
                            uint64_t now_ns)
{
    if (lane->pool->admission.algorithm != ADMIT_NONE && sched_queued(lane->sched) > 0)
        dispatch(side, result, now_ns);
}

/* True when queued. */
static bool queue_exchange(struct gate_side *side, struct exchange *exchange,
                           struct pump_result *result, uint64_t now_ns)
{
    enum sched_verdict verdict;

    exchange->queued_ns = now_ns;
    exchange->mark = EXCHANGE_UNMARKED;
    exchange->flow = pool_flow_for(exchange);
    exchange->class->meters.offered++;
    dispatch_before(side, exchange->lane, result, now_ns);
    verdict = enqueue(exchange, now_ns);
    if (is_full(verdict)) {
        /* What a server can take now does not wait, and so does not count against the limits. */
        dispatch(side, result, now_ns);
        verdict = enqueue(exchange, now_ns);
    }
    if (verdict == SCHED_TOTAL_FULL && gate_make_room(side, exchange, &result->refused, now_ns))
        verdict = enqueue(exchange, now_ns);
    if (verdict != SCHED_OK) {
        note_refusal(exchange, refusal_of(verdict));
        pool_drop_flow(exchange);
        return false;
    }
    exchange->state = EXCHANGE_QUEUED;
    if (exchange->class->queued++ == 0)
        class_feedback_waiting(&exchange->class->feedback, now_ns);
    if (!gate_may_join(side, exchange, &result->refused, now_ns)) {
        leave_queue(exchange, now_ns);
        note_refusal(exchange, REFUSAL_ADMISSION);
        return false;
    }
    exchange->class->meters.admitted++;
    return true;
}

static void refuse_all_due(struct gate_side *side, struct lane *lane, struct exchange_list *refused,
                           uint64_t now_ns)
{
    struct sched_item *item;

    while ((item = sched_dispatch(lane->sched, now_ns)) != NULL) {
        struct exchange *exchange = container_of(item, struct exchange, item);
        exchange->class->queued--;
        admit_leave(&lane->admit, gate_admission_cost(exchange), now_ns);
        refuse_outstanding(side, exchange, REFUSAL_NO_SERVER, refused, now_ns);
    }
}

/*
 * Nobody can serve what waits: it is refused, now rather than after its time-out. What windows and
 * limits hold back comes out as under FIFO; the flows start again without debts then.
 */
static void flush_lane(struct gate_side *side, struct lane *lane, struct exchange_list *refused,
                       uint64_t now_ns)
{
    sched_set_depth(lane->sched, UINT64_MAX);
    refuse_all_due(side, lane, refused, now_ns);
    if (sched_queued(lane->sched) > 0) {
        pool_switch_algorithm(lane, SCHED_ALGORITHM_FIFO);
        refuse_all_due(side, lane, refused, now_ns);
        pool_switch_algorithm(lane, lane->pool->algorithm);
    }
    gate_update_depth(lane, now_ns);
}

static void arm_timeout(struct exchange *exchange, uint64_t timeout_ns)
{
    timer_set(&exchange->loop->wheel, &exchange->queue_timer, exchange->queued_ns + timeout_ns);
}

static void pump_locked(struct gate_side *side, struct pump_result *result, uint64_t now_ns)
{
    struct pool *pool = side->pool;
    struct exchange_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
    struct exchange *exchange;
    struct lane *lane;

    gate_wake_clear(pool, now_ns);
    STAILQ_FOREACH(exchange, &side->finished, link)
    {
        end_exchange(pool, exchange);
    }
    STAILQ_CONCAT(&result->released, &side->finished);
    while ((exchange = STAILQ_FIRST(&side->submitted)) != NULL) {
        STAILQ_REMOVE_HEAD(&side->submitted, submit_link);
        if (queue_exchange(side, exchange, result, now_ns))
            STAILQ_INSERT_TAIL(&waiting, exchange, submit_link);
        else
            STAILQ_INSERT_TAIL(&result->refused, exchange, link);
    }
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        if (lane->unsettled)
            gate_update_depth(lane, now_ns);
    }
    dispatch(side, result, now_ns);
    TAILQ_FOREACH(lane, &pool->lanes, link)
    {
        if (sched_queued(lane->sched) > 0 && gate_lane_is_out(lane, now_ns))
            flush_lane(side, lane, &result->refused, now_ns);
        result->more_to_retire |= pool_retire_flows(lane, RETIRE_PER_PUMP, now_ns);
    }
    /* Most were dispatched at once and never need the timer. */
    while ((exchange = STAILQ_FIRST(&waiting)) != NULL) {
        STAILQ_REMOVE_HEAD(&waiting, submit_link);
        if (exchange->state != EXCHANGE_QUEUED)
            continue;
        arm_timeout(exchange, pool->queue_timeout_ns);
        if (exchange->mark == EXCHANGE_TO_MARK) {
            exchange->mark = EXCHANGE_MARKED;
            STAILQ_INSERT_TAIL(&result->marked, exchange, submit_link);
        }
    }
    result->wake_ns = gate_wake_needed(pool, now_ns);
}

static void tell_mark(struct exchange *exchange)
{
    if (exchange->ops->marked != NULL && !exchange->abandoned)
        exchange->ops->marked(exchange);
}

static void pump(struct loop *loop, struct turn_hook *hook)
{
    struct gate_side *side = container_of(hook, struct gate_side, hook);
    struct pool *pool = side->pool;
    struct pump_result result = {STAILQ_HEAD_INITIALIZER(result.refused),
                                 STAILQ_HEAD_INITIALIZER(result.dispatched),
                                 STAILQ_HEAD_INITIALIZER(result.released),
                                 STAILQ_HEAD_INITIALIZER(result.marked),
                                 SCHED_NEVER_NS,
                                 false};
    struct exchange *exchange;

    pthread_mutex_lock(&pool->lock);
    pump_locked(side, &result, gate_advance_clock(pool, loop_now_ns(loop)));
    pthread_mutex_unlock(&pool->lock);

    gate_wake_arm(side, result.wake_ns);
    /* In another turn, so that the loop gets to its other work in between. */
    if (result.more_to_retire)
        gate_kick(pool);
    for (unsigned i = 0; i < pool->side_count; i++) {
        struct gate_batch *batch = &side->batches[i];
        if (batch->first != NULL)
            loop_post(pool->sides[i].loop, batch->first, batch->last);
        *batch = (struct gate_batch){NULL, NULL};
    }
    while ((exchange = STAILQ_FIRST(&result.released)) != NULL) {
        STAILQ_REMOVE_HEAD(&result.released, link);
        exchange->ops->released(exchange);
    }
    while ((exchange = STAILQ_FIRST(&result.marked)) != NULL) {
        STAILQ_REMOVE_HEAD(&result.marked, submit_link);
        tell_mark(exchange);
    }
    while ((exchange = STAILQ_FIRST(&result.refused)) != NULL) {
        STAILQ_REMOVE_HEAD(&result.refused, link);
        timer_unlink(&exchange->queue_timer);
        if (exchange->abandoned)
            exchange->ops->released(exchange);
        else
            exchange->ops->refused(exchange, (enum refusal)exchange->refusal);
    }
    while ((exchange = STAILQ_FIRST(&result.dispatched)) != NULL) {
        STAILQ_REMOVE_HEAD(&result.dispatched, link);
        on_dispatch_message(loop, &exchange->message);
    }
}

/* A dispatch, or a refusal for want of servers, has reached the exchange's own loop. */
static void on_dispatch_message(struct loop *loop, struct loop_message *message)
{
    struct exchange *exchange = container_of(message, struct exchange, message);

    (void)loop;
    timer_unlink(&exchange->queue_timer);
    if (exchange->state == EXCHANGE_DISPATCHED) {
        if (exchange->mark == EXCHANGE_TO_MARK) {
            exchange->mark = EXCHANGE_MARKED;
            tell_mark(exchange);
        }
        if (exchange->abandoned)
            gate_finish(exchange, OUTCOME_ABORTED, 0);
        else
            exchange->ops->dispatched(exchange);
    } else if (exchange->abandoned) {
        exchange->ops->released(exchange);
    } else {
        exchange->ops->refused(exchange, (enum refusal)exchange->refusal);
    }
}

static void on_queue_timeout(struct timer *timer, uint64_t now_ns)
{
    struct exchange *exchange = container_of(timer, struct exchange, queue_timer);
    struct pool *pool = exchange->lane->pool;
    bool expired = false;

    pthread_mutex_lock(&pool->lock);
    if (exchange->state == EXCHANGE_QUEUED) {
        now_ns = gate_advance_clock(pool, now_ns);
        admit_leave(&exchange->lane->admit, gate_admission_cost(exchange), now_ns);
        leave_queue(exchange, now_ns);
        note_refusal(exchange, REFUSAL_TIMEOUT);
        expired = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (expired) {
        /* The one behind it may be due, or fit, where this one did not. */
        loop_add_pump(exchange->loop, &side_of(exchange)->hook);
        exchange->ops->refused(exchange, REFUSAL_TIMEOUT);
    }
}

bool gate_cancel(struct exchange *exchange)
{
    struct gate_side *side = side_of(exchange);
    struct pool *pool = side->pool;
    bool left = true;

    pthread_mutex_lock(&pool->lock);
    if (exchange->state == EXCHANGE_SUBMITTED) {
        STAILQ_REMOVE(&side->submitted, exchange, exchange, submit_link);
    } else if (exchange->state == EXCHANGE_QUEUED) {
        uint64_t now_ns = gate_advance_clock(pool, loop_now_ns(exchange->loop));
        admit_leave(&exchange->lane->admit, gate_admission_cost(exchange), now_ns);
        leave_queue(exchange, now_ns);
    } else {
        left = false;
    }
    if (left) {
        exchange->state = EXCHANGE_READING;
        exchange->class->meters.cancelled++;
    } else {
        exchange->abandoned = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (left) {
        timer_unlink(&exchange->queue_timer);
        /* Its place may be what the next one waits for (a queue limit is not, but a flow's head
         * is). */
        loop_add_pump(exchange->loop, &side->hook);
    }
    return left;
}

enum gate_moved gate_move(struct exchange *exchange)
{
    struct pool *pool = exchange->lane->pool;
    struct lane *lane = exchange->lane;
    uint64_t now_ns = loop_now_ns(exchange->loop);
    enum gate_moved moved = GATE_MOVED;

    pthread_mutex_lock(&pool->lock);
    struct server *old = exchange->server;
    gate_give_slot(exchange);
    struct server *server = gate_choose_server(lane, old, now_ns);
    if (server != NULL) {
        server->meters.retries++;
        gate_take_slot(exchange, server);
    } else if (!gate_lane_is_out(lane, now_ns)) {
        sched_requeue_front(lane->sched, &exchange->item);
        admit_requeue(&lane->admit, gate_admission_cost(exchange),
                      gate_advance_clock(pool, now_ns));
        exchange->state = EXCHANGE_QUEUED;
        exchange->server = NULL;
        exchange->class->queued++;
        exchange->class->outstanding--;
        pool->outstanding--;
        pool->outstanding_cost -= exchange->cost;
        arm_timeout(exchange, pool->queue_timeout_ns);
        moved = GATE_QUEUED;
    } else {
        gate_take_slot(exchange, old);
        moved = GATE_NOWHERE;
    }
    pthread_mutex_unlock(&pool->lock);
    loop_add_pump(exchange->loop, &side_of(exchange)->hook);
    return moved;
}

/* ------------------------------------------------------------------ from outside a turn */

void gate_count_refusal(struct exchange *exchange, enum refusal refusal)
{
    struct pool *pool = exchange->lane->pool;

    pthread_mutex_lock(&pool->lock);
    count_refusal(&exchange->class->meters, refusal);
    pthread_mutex_unlock(&pool->lock);
}

static void on_kick(struct loop *loop, struct loop_message *message)
{
    struct pool *pool = container_of(message, struct pool, kick);

    atomic_store(&pool->kicked, false);
    pool_feedback_arm(pool, loop_now_ns(loop));
    loop_add_pump(loop, &pool->sides[loop->index].hook);
}

void gate_kick(struct pool *pool)
{
    if (atomic_exchange(&pool->kicked, true))
        return;
    pool->kick.run = on_kick;
    loop_post(pool->sides[0].loop, &pool->kick, &pool->kick);
}

void gate_side_init(struct gate_side *side, struct pool *pool, struct loop *loop,
                    unsigned loop_count)
{
    memset(side, 0, sizeof(*side));
    side->hook.run = pump;
    side->pool = pool;
    side->loop = loop;
    STAILQ_INIT(&side->submitted);
    STAILQ_INIT(&side->finished);
    gate_wake_init(side);
    side->batches = memory_zalloc(loop_count * sizeof(*side->batches), "a gate's hand-over lists");
}

void gate_side_fini(struct gate_side *side)
{
    free(side->batches);
}
