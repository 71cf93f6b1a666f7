/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twodfq.c: two-dimensional fair queueing, after 2DFQ (Mace, Bodik, Musuvathi, Fonseca,
 * Varadarajan, "2DFQ", SIGCOMM 2016): small and large requests are kept apart in the slots as well.
 *
 * Start tags as in SFQ(D), with v the smallest start tag S among the heads when a request is
 * dispatched. A second clock, progress, is the work done so far over the weights of the flows that
 * had requests meanwhile, and not before v (as v in WF2Q+, Bennett and Zhang 1997). For slot i of D
 * a head may go iff
 *
 *     S - (i / D) * c / w <= progress
 *
 * and the smallest F among those goes. So the higher slots take a flow's next request before its
 * time, by up to its own length: of small requests enough to be kept busy, so that large ones, when
 * their time has come, get the low slots one after the other and not all at once. Where the depth
 * counts cost there are no numbered slots: i / D is then what is outstanding / depth.
 *
 * The work done is known at completions. In between it is taken to go on at the mean speed of the
 * last completions (fluid.h), for what is outstanding and no longer than there is of it.
 *
 * The paper looks at every flow for every slot. Here the heads are grouped by their size in virtual
 * time, a group a power of two, and only the smallest S of each group is looked at: within a group
 * sizes differ by less than two, so the order by S is the order by F nearly.
 *
 * v is never after the S of a waiting head, so that late tags are the tags on arrival
 * (start_tags.h).
 *
 * Invariants: a flow is in the pairing heap s->spread.root[flow->group] iff its queue is not empty;
 * bit g of occupied is set iff group g is not empty. item->aside of an outstanding item is its
 * slot, or SLOT_NONE: it was dispatched under another algorithm, or there are more than are
 * numbered.
 */
#include "sched/algorithms/tags/fluid.h"
#include "sched/algorithms/tags/start_tags.h"
#include "sched/engine/pairing.h"

#include <string.h>

#define WORD_BITS 64U

static void push(struct sched *s, struct sched_flow *flow)
{
    uint64_t size = tags_charge_of_head(flow);

    flow->group = size != 0 ? WORD_BITS - 1 - (unsigned)__builtin_clzll(size) : 0;
    pairing_push(&s->spread.root[flow->group], flow);
    s->spread.occupied |= UINT64_C(1) << flow->group;
}

static void pull(struct sched *s, struct sched_flow *flow)
{
    pairing_remove(&s->spread.root[flow->group], flow);
    if (s->spread.root[flow->group] == NULL)
        s->spread.occupied &= ~(UINT64_C(1) << flow->group);
}

static uint64_t lowest_free_slot(const struct sched_spread *spread)
{
    for (unsigned word = 0; word < SCHED_SLOT_WORDS; word++)
        if (~spread->slots_used[word] != 0)
            return word * WORD_BITS + (unsigned)__builtin_ctzll(~spread->slots_used[word]);
    return SCHED_SLOT_NONE;
}

static void use_slot(struct sched_spread *spread, uint64_t slot)
{
    if (slot != SCHED_SLOT_NONE)
        spread->slots_used[slot / WORD_BITS] |= UINT64_C(1) << slot % WORD_BITS;
}

static void free_slot(struct sched_spread *spread, uint64_t slot)
{
    if (slot != SCHED_SLOT_NONE)
        spread->slots_used[slot / WORD_BITS] &= ~(UINT64_C(1) << slot % WORD_BITS);
}

/* The smallest start tag among the heads; v is not before it. */
static uint64_t least_start(const struct sched *s)
{
    bool any = false;
    uint64_t least = s->vtime;

    for (uint64_t left = s->spread.occupied; left != 0; left &= left - 1) {
        const struct sched_flow *flow = s->spread.root[__builtin_ctzll(left)];
        if (!any || vtime_before(flow->tag, least))
            least = flow->tag;
        any = true;
    }
    return vtime_later(s->vtime, least);
}

/* i / D of the slot that is next, as part / whole; part < whole unless both are 0. */
static void next_slot(const struct sched *s, uint64_t *part, uint64_t *whole)
{
    *whole = s->depth;
    *part = s->depth_unit == SCHED_DEPTH_COST ? s->outstanding_cost : lowest_free_slot(&s->spread);
    if (*part >= *whole)
        *part = *whole != 0 ? *whole - 1 : 0;
}

static struct sched_item *twodfq_peek(struct sched *s)
{
    const uint64_t vtime = vtime_later(s->spread.progress, least_start(s));
    const struct sched_flow *best = NULL;
    uint64_t best_finish = 0;
    uint64_t part;
    uint64_t whole;

    next_slot(s, &part, &whole);
    if (whole == 0)
        return NULL;
    for (uint64_t left = s->spread.occupied; left != 0; left &= left - 1) {
        const struct sched_flow *flow = s->spread.root[__builtin_ctzll(left)];
        uint64_t size = tags_charge_of_head(flow);
        uint64_t finish = flow->tag + size;
        uint64_t lead = (uint64_t)((unsigned __int128)size * part / whole);
        if (vtime_before(vtime, flow->tag - lead))
            continue;
        if (best == NULL || vtime_before(finish, best_finish) ||
            (finish == best_finish &&
             sched_flow_head(flow)->sequence < best->queue.head->sequence)) {
            best = flow;
            best_finish = finish;
        }
    }
    return best != NULL ? best->queue.head : NULL;
}

static void twodfq_enter(struct sched *s)
{
    for (uint64_t i = 0; i < s->flows; i++)
        if (s->slots[i]->queue.head != NULL)
            push(s, s->slots[i]);
}

static void twodfq_leave(struct sched *s)
{
    memset(s->spread.root, 0, sizeof(s->spread.root));
    s->spread.occupied = 0;
}

static void twodfq_queue(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool first = flow->queue.head == NULL;

    queue_push_back(&flow->queue, item);
    if (first) {
        tags_wake(s, flow);
        push(s, flow);
    }
}

static void twodfq_take(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    assert(flow->queue.head == item);
    s->vtime = least_start(s);
    s->spread.progress = vtime_later(s->spread.progress, s->vtime);
    pull(s, flow);
    queue_pop_front(&flow->queue);
    tags_take(s, flow, item);
    if (flow->queue.head != NULL)
        push(s, flow);
    item->aside = lowest_free_slot(&s->spread);
    use_slot(&s->spread, item->aside);
    queue_push_back(&s->out, item);
}

static void twodfq_remove(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;
    const bool was_head = flow->queue.head == item;

    if (was_head)
        pull(s, flow);
    queue_remove(&flow->queue, item);
    if (was_head && flow->queue.head != NULL) {
        push(s, flow);
    }
}

/* The cost outstanding, in 2^-20 units, as far as it is looked at. */
static uint64_t work_left(const struct sched *s)
{
    uint64_t cost = s->outstanding_cost < SCHED_COST_MAX ? s->outstanding_cost : SCHED_COST_MAX;

    return cost << VTIME_SHIFT;
}

/* So much more work has been done, in 2^-20 units of cost. */
static void move_progress(struct sched *s, uint64_t work)
{
    struct sched_spread *spread = &s->spread;
    uint64_t furthest = s->front + VTIME_LAG - spread->progress;

    if (s->active_weight == 0)
        return;
    work += spread->rest;
    uint64_t moved = work / s->active_weight;
    spread->rest = work % s->active_weight;
    if (furthest > 2 * VTIME_LAG)
        furthest = 0;
    spread->progress += moved < furthest ? moved : furthest;
}

/* What is outstanding is being worked at, but no more can have been done than there is of it. */
static void twodfq_elapse(struct sched *s, uint64_t passed_ns)
{
    const uint64_t left = work_left(s) - s->spread.ahead;
    uint64_t work = fluid_work(s, passed_ns);

    work = work < left ? work : left;
    s->spread.ahead += work;
    move_progress(s, work);
    fluid_hold(s, passed_ns);
}

static void limit_ahead(struct sched *s)
{
    const uint64_t left = work_left(s);

    if (s->spread.ahead > left)
        s->spread.ahead = left;
}

static void twodfq_put_back(struct sched *s, struct sched_item *item)
{
    struct sched_flow *flow = item->flow;

    free_slot(&s->spread, item->aside);
    limit_ahead(s);
    if (flow->queue.head != NULL)
        pull(s, flow);
    tags_put_back(s, flow, item);
    queue_push_front(&flow->queue, item);
    push(s, flow);
}

/* What has been completed is known; what of it had been assumed is counted already. */
static void twodfq_done(struct sched *s, struct sched_item *item, uint64_t true_cost)
{
    const uint64_t work = true_cost << VTIME_SHIFT;
    const uint64_t assumed = work < s->spread.ahead ? work : s->spread.ahead;

    free_slot(&s->spread, item->aside);
    tags_correct(item->flow, item, true_cost);
    s->spread.ahead -= assumed;
    limit_ahead(s);
    move_progress(s, work - assumed);
    fluid_done(s, true_cost);
}

static void twodfq_changed(struct sched *s, struct sched_flow *flow)
{
    if (flow == NULL || flow->queue.head == NULL)
        return;
    pull(s, flow);
    push(s, flow);
}

const struct sched_ops sched_2dfq_ops = {
    .name = "2dfq",
    .elapse = twodfq_elapse,
    .enter = twodfq_enter,
    .leave = twodfq_leave,
    .queue = twodfq_queue,
    .peek = twodfq_peek,
    .take = twodfq_take,
    .put_back = twodfq_put_back,
    .remove = twodfq_remove,
    .done = twodfq_done,
    .changed = twodfq_changed,
};
