/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows.c: the lives of flows: attached, woken, at rest, retired (the picture is in engine.h).
 *
 * Invariants between calls:
 *   - s->slots[0 .. s->flows-1] are the attached flows, and every heap in use has room for them;
 *   - flow->place tells where the flow stands: RESTING in s->resting, COOLING in s->cooling, OWING
 *     in s->owing, RETIRED in s->retired, CLEAN nowhere, ACTIVE where the algorithm wants it;
 *   - a flow that is not ACTIVE has owed == 0;
 *   - s->active_weight is the sum over the ACTIVE flows, s->idle_pinned_weight over the pinned ones
 *     that are not.
 */
#include "sched/engine/backlogs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Twice what one dispatch can add to the resting list, so that it cannot grow for long. */
#define SETTLED_PER_DISPATCH 2

#define SLOTS_SMALLEST 16U
#define SLOTS_SPARE    4U /* memory is given back when this times as many would fit */

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
    else if (flow->place == FLOW_COOLING)
        heap_remove(&s->cooling, flow);
    else if (flow->place == FLOW_OWING)
        heap_remove(&s->owing, flow);
    else if (flow->place == FLOW_RETIRED)
        list_remove(&s->retired, flow);
}

static void retire(struct sched *s, struct sched_flow *flow)
{
    flow->reserve_ns = 0;
    flow->limit_ns = 0;
    if (flow->pinned) {
        flow->place = FLOW_CLEAN;
        return;
    }
    flow->place = FLOW_RETIRED;
    list_push_back(&s->retired, flow);
}

/* The horizon has reached the last finish tag: what the flow did no longer matters. */
static bool paid_up(const struct sched *s, const struct sched_flow *flow)
{
    return !vtime_before(sched_horizon(s), flow->tag);
}

/* When the time tags of an empty flow are as if it had never sent anything. */
static uint64_t cool_ns(const struct sched_flow *flow)
{
    return flow->reserve_ns > flow->limit_ns ? flow->reserve_ns : flow->limit_ns;
}

static void owe_or_retire(struct sched *s, struct sched_flow *flow)
{
    if (paid_up(s, flow)) {
        retire(s, flow);
    } else {
        flow->place = FLOW_OWING;
        heap_push(&s->owing, flow, flow->tag, 0);
    }
}

static bool settle_resting(struct sched *s)
{
    struct sched_flow *flow = s->resting.head;

    if (flow == NULL)
        return false;
    list_remove(&s->resting, flow);
    if (cool_ns(flow) > s->now_ns) {
        flow->place = FLOW_COOLING;
        heap_push(&s->cooling, flow, cool_ns(flow), 0);
    } else {
        owe_or_retire(s, flow);
    }
    return true;
}

static bool settle_cooling(struct sched *s)
{
    if (s->cooling.count == 0 || s->cooling.entries[0].tag > s->now_ns)
        return false;
    struct sched_flow *flow = s->cooling.entries[0].flow;
    heap_remove(&s->cooling, flow);
    owe_or_retire(s, flow);
    return true;
}

static bool settle_owing(struct sched *s)
{
    if (s->owing.count == 0 || vtime_before(sched_horizon(s), s->owing.entries[0].tag))
        return false;
    struct sched_flow *flow = s->owing.entries[0].flow;
    heap_remove(&s->owing, flow);
    retire(s, flow);
    return true;
}

void sched_flow_wake(struct sched *s, struct sched_flow *flow)
{
    assert(flow->place != FLOW_ACTIVE);
    leave_place(s, flow);
    if (flow->place == FLOW_CLEAN || flow->place == FLOW_RETIRED) {
        flow->tag = sched_horizon(s);
        flow->adjusted = flow->tag;
        flow->tag_rest = 0;
    }
    flow->place = FLOW_ACTIVE;
    s->active_weight += flow->weight;
    if (flow->pinned)
        s->idle_pinned_weight -= flow->weight;
}

void sched_flow_rest(struct sched *s, struct sched_flow *flow)
{
    assert(flow->place == FLOW_ACTIVE);
    flow->tag += (uint64_t)flow->owed;
    flow->adjusted += (uint64_t)flow->owed;
    flow->owed = 0;
    s->max_finish = vtime_later(s->max_finish, flow->tag);
    flow->place = FLOW_RESTING;
    list_push_back(&s->resting, flow);
    s->active_weight -= flow->weight;
    if (flow->pinned)
        s->idle_pinned_weight += flow->weight;
}

/*
 * Min-SFQ(D) may hold v back for as long as one request is outstanding, so v itself is lifted
 * first. Start tags of outstanding items matter by their order and difference to finish only. The
 * algorithm builds its heaps again, since the tags it ordered flows by have changed.
 */
static void rebase(struct sched *s)
{
    s->vtime = vtime_later(s->vtime, s->front - VTIME_LAG);
    const uint64_t floor = s->vtime - VTIME_LAG;

    s->ops->leave(s);
    while (settle_resting(s) || settle_cooling(s) || settle_owing(s))
        ;
    s->adjusted_vtime = vtime_later(s->adjusted_vtime, floor);
    for (uint64_t i = 0; i < s->flows; i++) {
        struct sched_flow *flow = s->slots[i];
        if (flow->place != FLOW_ACTIVE && flow->place != FLOW_COOLING)
            continue;
        flow->tag = vtime_later(flow->tag, floor);
        flow->adjusted = vtime_later(flow->adjusted, floor);
        if (!s->ops->stamps_arrival)
            continue;
        for (struct sched_item *item = flow->queue.head; item != NULL; item = item->next) {
            item->start = vtime_later(item->start, floor);
            item->aside = vtime_later(item->aside, floor);
        }
    }
    for (struct sched_item *item = s->out.head; item != NULL; item = item->next) {
        if (vtime_before(item->start, floor)) {
            item->finish += floor - item->start;
            item->start = floor;
        }
    }
    s->rebased = s->front;
    s->ops->enter(s);
}

void sched_flows_settle(struct sched *s)
{
    for (int i = 0; i < SETTLED_PER_DISPATCH && settle_resting(s); i++)
        ;
    for (int i = 0; i < SETTLED_PER_DISPATCH && settle_cooling(s); i++)
        ;
    for (int i = 0; i < SETTLED_PER_DISPATCH && settle_owing(s); i++)
        ;
    if (s->front - s->rebased >= VTIME_LAG)
        rebase(s);
}

void sched_flows_forget(struct sched *s)
{
    s->vtime = vtime_later(s->vtime, s->max_finish);
    s->adjusted_vtime = s->vtime;
    s->max_finish = s->vtime;
    s->front = s->vtime;
    s->rebased = s->vtime;
    heap_clear(&s->owing);
    for (uint64_t i = 0; i < s->flows; i++) {
        struct sched_flow *flow = s->slots[i];
        flow->tag = s->vtime;
        flow->adjusted = s->vtime;
        flow->tag_rest = 0;
        flow->owed = 0;
        if (flow->place == FLOW_OWING)
            retire(s, flow);
    }
}

/* Flows that wait for their time tags to pass do so no longer. */
static void forget_time(struct sched *s)
{
    heap_clear(&s->cooling);
    for (uint64_t i = 0; i < s->flows; i++) {
        struct sched_flow *flow = s->slots[i];
        flow->reserve_ns = 0;
        flow->reserve_rest = 0;
        flow->limit_ns = 0;
        flow->limit_rest = 0;
        if (flow->place == FLOW_COOLING)
            owe_or_retire(s, flow);
    }
}

void sched_flows_start_over(struct sched *s)
{
    forget_time(s);
    s->adjusted_vtime = s->vtime;
    for (uint64_t i = 0; i < s->flows; i++) {
        struct sched_flow *flow = s->slots[i];
        flow->adjusted = flow->tag;
        for (struct sched_item *item = flow->queue.head; item != NULL; item = item->next) {
            item->start = s->vtime;
            item->aside = s->vtime;
            item->charged = 0;
        }
    }
    memset(s->spread.slots_used, 0, sizeof(s->spread.slots_used));
    s->spread.progress = s->vtime;
    s->spread.rest = 0;
    s->spread.ahead = 0;
    s->speed = (struct sched_speed){0};
    for (struct sched_item *item = s->out.head; item != NULL; item = item->next) {
        item->aside = SCHED_SLOT_NONE;
        item->charged = 0;
    }
}

int sched_flow_init(struct sched_flow *flow, uint32_t weight)
{
    if (weight < SCHED_WEIGHT_MIN || weight > SCHED_WEIGHT_MAX)
        return -EINVAL;
    *flow = (struct sched_flow){
        .weight = weight,
        .reciprocal = vtime_reciprocal(weight),
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

static int reserve_slots(struct sched *s, uint64_t count)
{
    uint64_t capacity = s->slots_capacity;

    while (capacity < count)
        capacity = capacity == 0 ? SLOTS_SMALLEST : capacity * 2;
    while (capacity > SLOTS_SMALLEST && count * SLOTS_SPARE <= capacity)
        capacity /= 2;
    if (capacity == s->slots_capacity)
        return 0;
    struct sched_flow **slots = realloc(s->slots, capacity * sizeof(struct sched_flow *));
    if (slots == NULL)
        return -ENOMEM;
    s->slots = slots;
    s->slots_capacity = capacity;
    return 0;
}

int sched_flows_reserve(struct sched *s, const struct sched_ops *ops, uint64_t count)
{
    int error = reserve_slots(s, count);

    if (error == 0)
        error = heap_reserve(&s->ready, count);
    if (error == 0)
        error = heap_reserve(&s->owing, count);
    if (error == 0 && (ops->heaps & SCHED_HEAPS_PARKED) != 0)
        error = heap_reserve(&s->parked, count);
    if (error == 0 && (ops->heaps & SCHED_HEAPS_RESERVE) != 0)
        error = heap_reserve(&s->reserve, count);
    if (error == 0 && (ops->heaps & SCHED_HEAPS_COOLING) != 0)
        error = heap_reserve(&s->cooling, count);
    if (error == 0 && s->watching)
        error = heap_reserve(&s->backlogs, count);
    return error;
}

int sched_flow_attach(struct sched *s, struct sched_flow *flow)
{
    if (flow->sched != NULL)
        return -EBUSY;
    int error = sched_flows_reserve(s, s->ops, s->flows + 1);
    if (error != 0)
        return error;
    flow->sched = s;
    flow->place = FLOW_CLEAN;
    flow->slot = (uint32_t)s->flows;
    flow->share_tag = s->share_clock;
    s->slots[s->flows++] = flow;
    if (flow->pinned)
        s->idle_pinned_weight += flow->weight;
    return 0;
}

/* The last flow takes over a slot that has become free. */
static void fill_slot(struct sched *s, uint32_t slot)
{
    struct sched_flow *last = s->slots[--s->flows];

    last->slot = slot;
    s->slots[slot] = last;
}

int sched_flow_detach(struct sched *s, struct sched_flow *flow)
{
    assert(flow->sched == s);
    if (flow->queued != 0 || flow->outstanding != 0)
        return -EBUSY;
    leave_place(s, flow);
    flow->place = FLOW_CLEAN;
    flow->sched = NULL;
    if (flow->pinned)
        s->idle_pinned_weight -= flow->weight;
    fill_slot(s, flow->slot);
    /* Giving memory back may fail; then it is kept. */
    (void)sched_flows_reserve(s, s->ops, s->flows);
    return 0;
}

int sched_flow_set_weight(struct sched *s, struct sched_flow *flow, uint32_t weight)
{
    assert(flow->sched == s);
    if (weight < SCHED_WEIGHT_MIN || weight > SCHED_WEIGHT_MAX)
        return -EINVAL;
    if (flow->place == FLOW_ACTIVE)
        s->active_weight += (uint64_t)weight - flow->weight;
    else if (flow->pinned)
        s->idle_pinned_weight += (uint64_t)weight - flow->weight;
    if (flow->queue.head != NULL)
        s->speed.backlogged_weight += (uint64_t)weight - flow->weight;
    /* The head has its start tag already and no request has a finish tag before its dispatch. */
    flow->weight = weight;
    flow->reciprocal = vtime_reciprocal(weight);
    sched_note_changed(s, flow);
    if (s->ops->changed != NULL)
        s->ops->changed(s, flow);
    return 0;
}

int sched_flow_set_terms(struct sched_flow *flow, const struct sched_terms *terms)
{
    if (terms != NULL &&
        (terms->target_ns > SCHED_TIME_NS_MAX || terms->reservation_per_s > SCHED_RATE_MAX ||
         terms->limit_per_s > SCHED_RATE_MAX || terms->burst > SCHED_COST_MAX))
        return -EINVAL;
    flow->terms = terms;
    flow->reserve_ns = 0;
    flow->limit_ns = 0;
    flow->reserve_rest = 0;
    flow->limit_rest = 0;
    struct sched *s = flow->sched;
    if (s != NULL && flow->place == FLOW_COOLING) {
        heap_remove(&s->cooling, flow);
        owe_or_retire(s, flow);
    }
    if (s != NULL && s->ops->changed != NULL)
        s->ops->changed(s, flow);
    return 0;
}

bool sched_flow_idle(const struct sched *s, const struct sched_flow *flow)
{
    if (flow->sched != s || flow->place == FLOW_ACTIVE)
        return false;
    if (flow->place == FLOW_CLEAN || flow->place == FLOW_RETIRED)
        return true;
    return cool_ns(flow) <= s->now_ns && paid_up(s, flow);
}

struct sched_flow *sched_retire_next(struct sched *s)
{
    while (s->retired.head == NULL)
        if (!settle_owing(s) && !settle_cooling(s) && !settle_resting(s))
            return NULL;
    struct sched_flow *flow = s->retired.head;
    list_remove(&s->retired, flow);
    flow->place = FLOW_CLEAN;
    return flow;
}

/* Downwards, so that the last flow, which takes over the slot of one detached, has been named. */
struct sched_flow *sched_flow_next(const struct sched *s, const struct sched_flow *after)
{
    uint64_t slot = after == NULL ? s->flows : after->slot;

    return slot == 0 ? NULL : s->slots[slot - 1];
}
