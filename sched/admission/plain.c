/* SPDX-License-Identifier: Apache-2.0 */
/* none and tail: no state of their own. */
#include "sched/admission/admission_internal.h"

static void nothing(struct admit *admit)
{
    (void)admit;
}

static bool none_offer(struct admit *admit, uint64_t cost)
{
    (void)admit;
    (void)cost;
    return true;
}

static void none_look(const struct admit *admit, struct admit_view *view)
{
    (void)admit;
    (void)view;
}

const struct admit_policy_ops admit_none_ops = {
    .name = "none", .init = nothing, .offer = none_offer, .look = none_look};

static bool tail_offer(struct admit *admit, uint64_t cost)
{
    (void)cost;
    return admit->queue < admit->options.limit;
}

static void tail_look(const struct admit *admit, struct admit_view *view)
{
    view->queue_allowed = (double)admit->options.limit;
}

const struct admit_policy_ops admit_tail_ops = {
    .name = "tail", .init = nothing, .offer = tail_offer, .look = tail_look};
