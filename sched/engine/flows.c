/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows.c: the lives of flows: attached, woken, at rest, retired (the picture is in engine.h).
 *
 * Invariants between calls:
 *   - s->all links every attached flow; both heaps have room for all of them;
 *   - flow->place tells which one list or heap the flow stands in through place_next/place_prev or
 *     heap_index: RESTING s->resting, OWING s->owing, RETIRED s->retired, CLEAN none, ACTIVE
 *     s->ready iff it has items in its own queue;
 *   - a flow that is not ACTIVE has owed == 0.
 */
#include "sched/engine/engine.h"

#include <assert.h>
#include <errno.h>

/* Twice what one dispatch can add to the resting list, so that it cannot grow for long. */
#define SETTLED_PER_DISPATCH 2

static void list_push_back(struct flow_list *list, struct sched_flow *flow)
{
    flow->place_prev = list->tail;
    flow->place_next = NULL;
    if (list->tail != NULL)
        list->tail->place_next = flow;
    else
        list->head = flow;
    list->tail = flow;
}

static void list_remove(struct flow_list *list, struct sched_flow *flow)
{
    if (flow->place_prev != NULL)
        flow->place_prev->place_next = flow->place_next;
    else
        list->head = flow->place_next;
    if (flow->place_next != NULL)
        flow->place_next->place_prev = flow->place_prev;
    else
        list->tail = flow->place_prev;
}

static void leave_place(struct sched *s, struct sched_flow *flow)
{
    if (flow->place == FLOW_RESTING)
        list_remove(&s->resting, flow);
    else if (flow->place == FLOW_OWING)
        heap_remove(&s->owing, flow->heap_index);
    else if (flow->place == FLOW_RETIRED)
        list_remove(&s->retired, flow);
}

static void retire(struct sched *s, struct sched_flow *flow)
{
    if (flow->pinned) {
        flow->place = FLOW_CLEAN;
        return;
    }
    flow->place = FLOW_RETIRED;
    list_push_back(&s->retired, flow);
}

/* v has reached the last finish tag: what the flow did no longer matters. */
static bool paid_up(const struct sched *s, const struct sched_flow *flow)
{
    return !vtime_before(s->vtime, flow->tag);
}

static bool settle_resting(struct sched *s)
{
    struct sched_flow *flow = s->resting.head;

    if (flow == NULL)
        return false;
    list_remove(&s->resting, flow);
    if (paid_up(s, flow)) {
        retire(s, flow);
    } else {
        flow->place = FLOW_OWING;
        heap_push(&s->owing, flow, flow->tag, 0);
    }
    return true;
}

static bool settle_owing(struct sched *s)
{
    if (s->owing.count == 0 || !paid_up(s, s->owing.entries[0].flow))
        return false;
    struct sched_flow *flow = s->owing.entries[0].flow;
    heap_remove(&s->owing, 0);
    retire(s, flow);
    return true;
}

void sched_flow_wake(struct sched *s, struct sched_flow *flow)
{
    assert(flow->place != FLOW_ACTIVE);
    leave_place(s, flow);
    if (flow->place == FLOW_CLEAN || flow->place == FLOW_RETIRED) {
        flow->tag = s->vtime;
        flow->tag_rest = 0;
    }
    flow->place = FLOW_ACTIVE;
}

void sched_flow_rest(struct sched *s, struct sched_flow *flow)
{
    assert(flow->place == FLOW_ACTIVE);
    flow->tag += (uint64_t)flow->owed;
    flow->owed = 0;
    s->max_finish = vtime_later(s->max_finish, flow->tag);
    flow->place = FLOW_RESTING;
    list_push_back(&s->resting, flow);
}

void sched_flows_settle(struct sched *s)
{
    for (int i = 0; i < SETTLED_PER_DISPATCH && settle_resting(s); i++)
        ;
    for (int i = 0; i < SETTLED_PER_DISPATCH && settle_owing(s); i++)
        ;
    if (s->front - s->rebased >= VTIME_LAG)
        sched_flows_rebase(s);
}

void sched_flows_forget(struct sched *s)
{
    s->vtime = vtime_later(s->vtime, s->max_finish);
    s->max_finish = s->vtime;
    s->front = s->vtime;
    s->rebased = s->vtime;
    for (struct sched_flow *flow = s->all; flow != NULL; flow = flow->all_next) {
        flow->tag = s->vtime;
        flow->tag_rest = 0;
        flow->owed = 0;
        if (flow->place == FLOW_OWING) {
            flow->heap_index = HEAP_NONE;
            retire(s, flow);
        }
    }
    s->owing.count = 0;
}

/*
 * Min-SFQ(D) may hold v back for as long as one request is outstanding, so v itself is lifted
 * first. Start tags of outstanding items matter by their order and difference to finish only.
 */
void sched_flows_rebase(struct sched *s)
{
    s->vtime = vtime_later(s->vtime, s->front - VTIME_LAG);
    const uint64_t floor = s->vtime - VTIME_LAG;

    while (settle_resting(s) || settle_owing(s))
        ;
    for (struct sched_flow *flow = s->all; flow != NULL; flow = flow->all_next)
        if (flow->place == FLOW_ACTIVE && vtime_before(flow->tag, floor))
            flow->tag = floor;
    for (struct sched_item *item = s->out.head; item != NULL; item = item->next) {
        if (vtime_before(item->start, floor)) {
            item->finish += floor - item->start;
            item->start = floor;
        }
    }
    s->rebased = s->front;
}

int sched_flow_init(struct sched_flow *flow, uint32_t weight)
{
    if (weight < SCHED_WEIGHT_MIN || weight > SCHED_WEIGHT_MAX)
        return -EINVAL;
    *flow = (struct sched_flow){
        .weight = weight,
        .reciprocal = vtime_reciprocal(weight),
        .heap_index = HEAP_NONE,
        .place = FLOW_CLEAN,
    };
    return 0;
}

void sched_flow_pin(struct sched_flow *flow)
{
    assert(flow->sched == NULL);
    flow->pinned = true;
}

void sched_flow_set_limit(struct sched_flow *flow, uint32_t queue_limit)
{
    flow->queue_limit = queue_limit;
}

int sched_flow_attach(struct sched *s, struct sched_flow *flow)
{
    if (flow->sched != NULL)
        return -EBUSY;
    int error = heap_reserve(&s->ready, s->flows + 1);
    if (error == 0)
        error = heap_reserve(&s->owing, s->flows + 1);
    if (error != 0)
        return error;
    flow->sched = s;
    flow->place = FLOW_CLEAN;
    flow->all_prev = NULL;
    flow->all_next = s->all;
    if (s->all != NULL)
        s->all->all_prev = flow;
    s->all = flow;
    s->flows++;
    return 0;
}

int sched_flow_detach(struct sched *s, struct sched_flow *flow)
{
    assert(flow->sched == s);
    if (flow->queued != 0 || flow->outstanding != 0)
        return -EBUSY;
    leave_place(s, flow);
    flow->place = FLOW_CLEAN;
    flow->sched = NULL;
    if (flow->all_prev != NULL)
        flow->all_prev->all_next = flow->all_next;
    else
        s->all = flow->all_next;
    if (flow->all_next != NULL)
        flow->all_next->all_prev = flow->all_prev;
    s->flows--;
    /* Giving memory back may fail; then it is kept. */
    (void)heap_reserve(&s->ready, s->flows);
    (void)heap_reserve(&s->owing, s->flows);
    return 0;
}

int sched_flow_set_weight(struct sched *s, struct sched_flow *flow, uint32_t weight)
{
    assert(flow->sched == s);
    (void)s;
    if (weight < SCHED_WEIGHT_MIN || weight > SCHED_WEIGHT_MAX)
        return -EINVAL;
    /* The head has its start tag already and no request has a finish tag before its dispatch. */
    flow->weight = weight;
    flow->reciprocal = vtime_reciprocal(weight);
    return 0;
}

int sched_flow_set_terms(struct sched_flow *flow, const struct sched_terms *terms)
{
    if (terms != NULL &&
        (terms->target_ns > SCHED_TIME_NS_MAX || terms->reservation_per_s > SCHED_RATE_MAX ||
         terms->limit_per_s > SCHED_RATE_MAX || terms->burst > SCHED_COST_MAX))
        return -EINVAL;
    flow->terms = terms;
    return 0;
}

bool sched_flow_idle(const struct sched *s, const struct sched_flow *flow)
{
    if (flow->sched != s || flow->place == FLOW_ACTIVE)
        return false;
    return flow->place == FLOW_CLEAN || flow->place == FLOW_RETIRED || paid_up(s, flow);
}

struct sched_flow *sched_retire_next(struct sched *s)
{
    while (s->retired.head == NULL)
        if (!settle_owing(s) && !settle_resting(s))
            return NULL;
    struct sched_flow *flow = s->retired.head;
    list_remove(&s->retired, flow);
    flow->place = FLOW_CLEAN;
    return flow;
}

struct sched_flow *sched_flow_next(const struct sched *s, const struct sched_flow *after)
{
    return after == NULL ? s->all : after->all_next;
}
