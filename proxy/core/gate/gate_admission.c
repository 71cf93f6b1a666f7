/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may wait: the admission policy's word, and on whom it falls.
 *
 * A policy says that one too many has come; it does not know of flows. Whom to put out, or to slow
 * down, is decided here: the newest request of the flow whose normalised backlog is the longest
 * (sched_victim), which may well be of another flow than the one that has just come. Where nobody
 * of a longer backlog has a request queued, a flow that is within its share still gets in
 * (sched_within_share): others hold the slots. So a flow within its share loses nothing while
 * another exceeds its own, and what such flows may have queued together is bounded.
 *
 *      refuse   that request leaves the queue and is refused
 *      mark     it stays, but its client is not read from for a while
 */
#include "proxy/core/container_of.h"
#include "proxy/core/gate/gate_internal.h"

/* What becomes of the one on whom the no falls. */
static bool is_marked(const struct exchange *victim)
{
    return victim->insists || victim->lane->pool->admission.action == CONFIG_ADMISSION_MARK;
}

uint64_t gate_admission_cost(const struct exchange *exchange)
{
    if (exchange->lane->pool->depth_unit != CONFIG_DEPTH_COST || exchange->cost == 0)
        return 1;
    return exchange->cost < ADMIT_COST_MAX ? exchange->cost : ADMIT_COST_MAX;
}

static struct exchange *longest_newest(const struct exchange *exchange, uint64_t cost)
{
    struct sched_item *item = sched_victim(exchange->lane->sched, &exchange->flow->sched, cost);

    return item != NULL ? container_of(item, struct exchange, item) : NULL;
}

/* One whose client is being slowed already is left as it is. */
static void mark(struct exchange *exchange)
{
    if (exchange->mark != EXCHANGE_UNMARKED)
        return;
    exchange->mark = EXCHANGE_TO_MARK;
    exchange->mark_ns = admit_mark_ns(&exchange->lane->admit);
    exchange->class->meters.marked++;
}

/*
 * On whom the no falls: one of a flow that exceeds its share more than this one's (`*victim`), this
 * one itself, or nobody: those who exceed theirs may have nothing queued, only slots.
 */
static bool falls_on_somebody(struct exchange *exchange, struct exchange **victim)
{
    const struct lane *lane = exchange->lane;

    *victim = longest_newest(exchange, 0);
    if (*victim != NULL)
        return true;
    *victim = exchange;
    return !sched_within_share(lane->sched, &exchange->flow->sched, lane->admit.options.slots);
}

bool gate_may_join(struct gate_side *side, struct exchange *exchange, struct exchange_list *refused,
                   uint64_t now_ns)
{
    struct admit *admit = &exchange->lane->admit;
    uint64_t cost = gate_admission_cost(exchange);
    struct exchange *victim;

    if (admit_offer(admit, cost, now_ns))
        return true;
    bool somebody = falls_on_somebody(exchange, &victim);
    if (somebody && !is_marked(victim)) {
        if (victim == exchange)
            return false;
        admit_swap(admit, cost, gate_admission_cost(victim), now_ns);
        gate_put_out(side, victim, REFUSAL_ADMISSION, refused, now_ns);
        return true;
    }
    admit_mark(admit, cost, now_ns);
    if (somebody)
        mark(victim);
    return true;
}

bool gate_may_go(struct gate_side *side, struct exchange *exchange, struct exchange_list *refused,
                 uint64_t now_ns)
{
    struct admit *admit = &exchange->lane->admit;
    uint64_t cost = gate_admission_cost(exchange);
    uint64_t waited_ns = now_ns > exchange->queued_ns ? now_ns - exchange->queued_ns : 0;
    struct exchange *victim;

    if (admit_dispatch(admit, cost, waited_ns, now_ns))
        return true;
    bool somebody = falls_on_somebody(exchange, &victim);
    if (somebody && !is_marked(victim)) {
        if (victim == exchange)
            return false;
        admit_leave(admit, gate_admission_cost(victim), now_ns);
        gate_put_out(side, victim, REFUSAL_ADMISSION, refused, now_ns);
    } else if (somebody) {
        mark(victim);
    }
    admit_keep(admit, cost, now_ns);
    return true;
}

bool gate_make_room(struct gate_side *side, struct exchange *exchange,
                    struct exchange_list *refused, uint64_t now_ns)
{
    struct lane *lane = exchange->lane;

    /* Watched from the first time on that a queue was full: most never are. */
    if (sched_watch_backlogs(lane->sched, true) != 0)
        return false;
    struct exchange *victim = longest_newest(exchange, exchange->cost);
    if (victim == NULL)
        return false;
    admit_leave(&lane->admit, gate_admission_cost(victim), now_ns);
    gate_put_out(side, victim, REFUSAL_POOL_FULL, refused, now_ns);
    return true;
}
