/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c: the requests' side of the scheduler: states, counters, limits, depth, choice of the
 * algorithm. The order itself is the algorithm's (engine.h).
 *
 * Invariants between calls:
 *   - s->queued = sum of flow->queued, and so for the other three counters;
 *   - an item is QUEUED iff it is in its flow's queue or s->arrivals, OUTSTANDING iff in s->out;
 *   - a flow is ACTIVE iff it has queued or outstanding items;
 *   - nothing queued and nothing outstanding implies v is not before any finish tag given.
 */
#include "sched/engine/backlogs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sched_ops *const algorithms[SCHED_ALGORITHMS] = {
    [SCHED_ALGORITHM_FIFO] = &sched_fifo_ops,
    [SCHED_ALGORITHM_SFQ] = &sched_sfq_ops,
    [SCHED_ALGORITHM_SFQD] = &sched_sfqd_ops,
    [SCHED_ALGORITHM_MINSFQD] = &sched_minsfqd_ops,
    [SCHED_ALGORITHM_FSFQ] = &sched_fsfq_ops,
    [SCHED_ALGORITHM_RW] = &sched_rw_ops,
    [SCHED_ALGORITHM_HYBRID] = &sched_hybrid_ops,
    [SCHED_ALGORITHM_VIRTUAL_CLOCK] = &sched_virtual_clock_ops,
    [SCHED_ALGORITHM_WFQ] = &sched_wfq_ops,
    [SCHED_ALGORITHM_EDF] = &sched_edf_ops,
    [SCHED_ALGORITHM_SCF] = &sched_scf_ops,
    [SCHED_ALGORITHM_LEAKY_BUCKET] = &sched_leaky_bucket_ops,
    [SCHED_ALGORITHM_MCLOCK] = &sched_mclock_ops,
    [SCHED_ALGORITHM_2DFQ] = &sched_2dfq_ops,
};

static bool algorithm_known(enum sched_algorithm algorithm)
{
    return (unsigned)algorithm < SCHED_ALGORITHMS;
}

static bool unit_known(enum sched_depth_unit unit)
{
    return unit == SCHED_DEPTH_REQUESTS || unit == SCHED_DEPTH_COST;
}

static bool options_valid(const struct sched_options *options)
{
    return options->capacity_per_s <= SCHED_RATE_MAX && options->ageing_ns <= SCHED_TIME_NS_MAX;
}

struct sched *sched_create(const struct sched_params *params)
{
    if (!algorithm_known(params->algorithm) || !unit_known(params->depth_unit) ||
        !options_valid(&params->options)) {
        errno = EINVAL;
        return NULL;
    }
    struct sched *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->ops = algorithms[params->algorithm];
    s->algorithm = params->algorithm;
    s->depth_unit = params->depth_unit;
    s->depth = params->depth;
    s->flow_queue_limit = params->flow_queue_limit;
    s->total_queue_limit = params->total_queue_limit;
    s->options = params->options;
    s->vtime = params->virtual_start;
    s->adjusted_vtime = s->vtime;
    s->spread.progress = s->vtime;
    s->max_finish = s->vtime;
    s->front = s->vtime;
    s->rebased = s->vtime;
    heap_init(&s->ready, offsetof(struct sched_flow, heap_place));
    heap_init(&s->parked, offsetof(struct sched_flow, heap_place));
    heap_init(&s->owing, offsetof(struct sched_flow, heap_place));
    heap_init(&s->cooling, offsetof(struct sched_flow, heap_place));
    heap_init(&s->backlogs, offsetof(struct sched_flow, backlog_place));
    heap_init(&s->reserve, offsetof(struct sched_flow, reserve_place));
    return s;
}

void sched_destroy(struct sched *s)
{
    if (s == NULL)
        return;
    for (uint64_t i = 0; i < s->flows; i++)
        s->slots[i]->sched = NULL;
    free(s->slots);
    heap_fini(&s->ready);
    heap_fini(&s->owing);
    heap_fini(&s->parked);
    heap_fini(&s->reserve);
    heap_fini(&s->cooling);
    heap_fini(&s->backlogs);
    free(s);
}

int sched_set_depth(struct sched *s, uint64_t depth)
{
    s->depth = depth;
    return 0;
}

int sched_set_depth_unit(struct sched *s, enum sched_depth_unit unit)
{
    if (!unit_known(unit))
        return -EINVAL;
    s->depth_unit = unit;
    if (s->ops->changed != NULL)
        s->ops->changed(s, NULL);
    return 0;
}

int sched_set_limits(struct sched *s, uint64_t flow_queue_limit, uint64_t total_queue_limit)
{
    s->flow_queue_limit = flow_queue_limit;
    s->total_queue_limit = total_queue_limit;
    return 0;
}

int sched_set_options(struct sched *s, const struct sched_options *options)
{
    if (!options_valid(options))
        return -EINVAL;
    s->options = *options;
    if (s->ops->changed != NULL)
        s->ops->changed(s, NULL);
    return 0;
}

int sched_set_algorithm(struct sched *s, enum sched_algorithm algorithm)
{
    if (!algorithm_known(algorithm))
        return -EINVAL;
    if (algorithm == s->algorithm)
        return 0;
    if (sched_flows_reserve(s, algorithms[algorithm], s->flows) != 0)
        return -ENOMEM;
    s->ops->leave(s);
    s->algorithm = algorithm;
    s->ops = algorithms[algorithm];
    sched_flows_start_over(s);
    s->ops->enter(s);
    return 0;
}

const char *sched_algorithm_name(enum sched_algorithm algorithm)
{
    return algorithm_known(algorithm) ? algorithms[algorithm]->name : NULL;
}

int sched_algorithm_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < SCHED_ALGORITHMS; i++)
        if (strcmp(name, algorithms[i]->name) == 0)
            return i;
    return -EINVAL;
}

void sched_item_init(struct sched_item *item)
{
    *item = (struct sched_item){.state = SCHED_ITEM_IDLE};
}

/* The counters of a waiting item, added or taken away. */
static void count_queued(struct sched *s, struct sched_item *item)
{
    s->queued++;
    s->queued_cost += item->cost;
    item->flow->queued++;
    item->flow->queued_cost += item->cost;
}

static void uncount_queued(struct sched *s, struct sched_item *item)
{
    s->queued--;
    s->queued_cost -= item->cost;
    item->flow->queued--;
    item->flow->queued_cost -= item->cost;
}

static void uncount_outstanding(struct sched *s, struct sched_item *item)
{
    s->outstanding--;
    s->outstanding_cost -= item->cost;
    item->flow->outstanding--;
    item->flow->outstanding_cost -= item->cost;
}

/* An item has left for good: its flow may be empty now, and the busy period may have ended. */
static void item_gone(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    item->state = SCHED_ITEM_IDLE;
    sched_note_changed(s, flow);
    if (flow->queued == 0 && flow->outstanding == 0)
        sched_flow_rest(s, flow);
    if (s->queued == 0 && s->outstanding == 0) {
        s->vtime = vtime_later(s->vtime, s->max_finish);
        s->adjusted_vtime = s->vtime;
    }
}

static inline void note_time(struct sched *s, uint64_t now_ns)
{
    if (now_ns <= s->now_ns)
        return;
    if (s->ops->elapse != NULL)
        s->ops->elapse(s, now_ns - s->now_ns);
    s->now_ns = now_ns;
}

enum sched_verdict sched_enqueue(struct sched *s, struct sched_flow *flow, struct sched_item *item,
                                 uint64_t cost, uint64_t now_ns)
{
    assert(flow->sched == s && item->state == SCHED_ITEM_IDLE);
    note_time(s, now_ns);
    uint64_t flow_limit = flow->queue_limit != 0 ? flow->queue_limit : s->flow_queue_limit;
    if (flow_limit != 0 && flow->queued >= flow_limit)
        return SCHED_FLOW_FULL;
    if (s->total_queue_limit != 0 && s->queued >= s->total_queue_limit)
        return SCHED_TOTAL_FULL;

    if (cost > SCHED_COST_MAX)
        cost = SCHED_COST_MAX;
    else if (cost == 0)
        cost = 1;
    if (s->ops->admit != NULL) {
        enum sched_verdict verdict = s->ops->admit(s, flow, cost);
        if (verdict != SCHED_OK)
            return verdict;
    }
    item->flow = flow;
    item->cost = cost;
    item->charged = 0;
    item->sequence = s->sequence++;
    item->arrival_ns = s->now_ns;
    item->state = SCHED_ITEM_QUEUED;
    if (flow->place != FLOW_ACTIVE)
        sched_flow_wake(s, flow);
    s->ops->queue(s, item);
    count_queued(s, item);
    sched_note_queued(s, flow);
    return SCHED_OK;
}

static bool room_for(const struct sched *s, uint64_t cost)
{
    if (s->outstanding == 0)
        return s->depth > 0;
    if (s->ops->serial)
        return false;
    if (s->depth_unit == SCHED_DEPTH_REQUESTS)
        return s->outstanding < s->depth;
    return s->outstanding_cost < s->depth && cost <= s->depth - s->outstanding_cost;
}

struct sched_item *sched_dispatch(struct sched *s, uint64_t now_ns)
{
    note_time(s, now_ns);
    if (s->queued == 0)
        return NULL;
    struct sched_item *item = s->ops->peek(s);
    if (item == NULL || !room_for(s, item->cost))
        return NULL;

    assert(item->state == SCHED_ITEM_QUEUED);
    uncount_queued(s, item);
    s->outstanding++;
    s->outstanding_cost += item->cost;
    item->flow->outstanding++;
    item->flow->outstanding_cost += item->cost;
    item->state = SCHED_ITEM_OUTSTANDING;
    s->ops->take(s, item);
    sched_note_taken(s, item);
    sched_fetch_flows(s);
    if (sched_flows_unsettled(s))
        sched_flows_settle(s);
    return item;
}

uint64_t sched_wake_ns(const struct sched *s)
{
    if (s->queued == 0 || s->ops->wake_ns == NULL || !room_for(s, 1))
        return SCHED_NEVER_NS;
    uint64_t wake_ns = s->ops->wake_ns(s);
    /* What is due already waits for room. */
    return wake_ns > s->now_ns ? wake_ns : SCHED_NEVER_NS;
}

void sched_requeue_front(struct sched *s, struct sched_item *item)
{
    assert(item->state == SCHED_ITEM_OUTSTANDING && item->flow->sched == s);
    uncount_outstanding(s, item);
    queue_remove(&s->out, item);
    item->state = SCHED_ITEM_QUEUED;
    s->ops->put_back(s, item);
    count_queued(s, item);
    sched_note_put_back(s, item);
}

void sched_complete(struct sched *s, struct sched_item *item, uint64_t true_cost, uint64_t now_ns)
{
    note_time(s, now_ns);
    assert(item->state == SCHED_ITEM_OUTSTANDING && item->flow->sched == s);
    sched_fetch_second(s);
    uncount_outstanding(s, item);
    queue_remove(&s->out, item);
    s->ops->done(s, item, true_cost < SCHED_COST_MAX ? true_cost : SCHED_COST_MAX);
    item_gone(s, item);
}

void sched_cancel(struct sched *s, struct sched_item *item, uint64_t now_ns)
{
    note_time(s, now_ns);
    assert(item->state == SCHED_ITEM_QUEUED && item->flow->sched == s);
    uncount_queued(s, item);
    s->ops->remove(s, item);
    item_gone(s, item);
}

enum sched_algorithm sched_algorithm_of(const struct sched *s)
{
    return s->algorithm;
}

uint64_t sched_depth(const struct sched *s)
{
    return s->depth;
}

uint64_t sched_queued(const struct sched *s)
{
    return s->queued;
}

uint64_t sched_queued_cost(const struct sched *s)
{
    return s->queued_cost;
}

uint64_t sched_outstanding(const struct sched *s)
{
    return s->outstanding;
}

uint64_t sched_outstanding_cost(const struct sched *s)
{
    return s->outstanding_cost;
}

uint64_t sched_flows(const struct sched *s)
{
    return s->flows;
}

uint64_t sched_virtual_time(const struct sched *s)
{
    return s->vtime;
}
