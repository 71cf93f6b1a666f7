/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response targets: the pool's side of the loop that moves weights (sched/feedback/feedback.h).
 *
 *      class meters --- once a period ---> samples --> sched_feedback_step
 *           ^                                              |
 *           '---- the scheduler, by the new weights <------'
 *
 * A pool whose flows have no response-target has no loop. Where one has, every class is in it:
 * those without a target are what weight can be taken from. Samples are differences of the meters,
 * so the response is the mean of what was answered in the period, waiting and service; of a class
 * that gets nothing done, the wait of its oldest request counts, as far as it is known.
 *
 * The loop's timer is the first loop's; everything else changes under the pool's lock.
 */
#ifndef SPILLWAY_CORE_POOL_POOL_FEEDBACK_H
#define SPILLWAY_CORE_POOL_POOL_FEEDBACK_H

#include "proxy/config/config.h"
#include "proxy/control/meters.h"
#include "proxy/io/timer.h"
#include "sched/feedback/feedback.h"

struct flow_class;
struct pool;

/* Of a pool. */
struct pool_feedback {
    struct sched_feedback loop;
    uint64_t configured_ns; /* the period, when there is a loop */
    uint64_t period_ns;     /* 0: there is none */
    struct timer timer;
};

/* Of a class. */
struct class_feedback {
    struct sched_feedback_flow flow;
    struct sched_feedback_terms terms;
    bool in_loop;
    /* The meters when the period began. */
    uint64_t waits, waits_ns, services, services_ns;
    uint64_t waiting_since_ns; /* while requests wait: none was sent since */
};

/* The pool is new. */
void pool_feedback_init(struct pool *pool);

/*
 * Takes over what the configuration says of the classes, which are configured already. A class
 * whose target and range stay keeps the weight it was moved to. Under the lock.
 */
void pool_feedback_configure(struct pool *pool, const struct config_pool *config);

/*
 * Changes a class's target (0: none) or its configured weight: its part of the loop starts again
 * from that weight. -EINVAL when the weight is out of the class's range; nothing has changed then.
 * Under the lock.
 */
int pool_feedback_set(struct flow_class *class, uint64_t target_ns, uint32_t weight);

/* On the first loop, after any of the above: sets the timer if it is needed and not set. Without
 * the lock. */
void pool_feedback_arm(struct pool *pool, uint64_t now_ns);

/* The first request of the class to wait was queued, or one of several was sent. Under the lock. */
static inline void class_feedback_waiting(struct class_feedback *feedback, uint64_t now_ns)
{
    feedback->waiting_since_ns = now_ns;
}

/* "met", "raising", ...; "no-target". Under the lock. */
static inline const char *class_feedback_state(const struct class_feedback *feedback)
{
    return sched_feedback_state_name(feedback->in_loop ? feedback->flow.state
                                                       : SCHED_FEEDBACK_NO_TARGET);
}

#endif
