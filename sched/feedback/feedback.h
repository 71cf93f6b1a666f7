/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback.h: moves weights so that flows meet their response-time targets.
 *
 * Shares say who gets how much of a service; users feel response times. A loop (struct
 * sched_feedback) holds the flows of one scheduler. Once per period, one second or more, the caller
 * fills in what each flow experienced and steps the loop; the loop then says what each weight
 * should be. It changes the weights of flows that have a target, within the limits given for each,
 * and of no others.
 *
 *      scheduler --- completions, response, waiting ---> sample --.
 *          ^                                                      | sched_feedback_step
 *          '--- sched_flow_set_weight <--- flow->weight <---------'
 *
 * Use:
 *     for each flow: flow->sample = what it did since the last step;
 *     sched_feedback_step(&loop);
 *     for each flow whose `moved` is set: sched_flow_set_weight(s, ..., flow->weight);
 *
 * States of a flow with a target T; R is the response measured:
 *
 *                     R > T in 2 of 4 measurements
 *   UNKNOWN ---> MET -----------------------------> RAISING --- weight_max reached --> AT_LIMIT
 *                ^ ^ <-----------------------------    |                                   |
 *                | |            R <= T                 | raising is no use                 | for
 *                v |                                   v                                   | long
 *             LOWERING                            INFEASIBLE <-----------------------------'
 *      R << T, weight above                       R <= T four times in a row: MET
 *      the configured one
 *
 *   UNKNOWN     nothing measured yet, or nothing happens any more. The weight rests.
 *   MET         on target. The weight rests; or, having been lowered below the configured one, it
 *               goes back up to it (RAISING) when nobody is off target any more.
 *   RAISING     off target: the weight goes up, one step per decision.
 *   LOWERING    on target with much room (room_percent): the weight goes back to the configured
 *               one; and below it, down to weight_min, while another flow is off its target with
 *               its weight at weight_max.
 *   AT_LIMIT    off target with the weight at weight_max.
 *   INFEASIBLE  off target, and raising the weight is no use. The weight rests. Any of:
 *               - the time at the service alone exceeds the target (weights only shorten waiting);
 *               - nobody has anything to give: the active flows without a target, or not off it
 *                 lately, hold less than 1/16 of the active weight between them;
 *               - raising this one was followed by another's falling off its target, three times:
 *                 it stands back for 64 periods, twice as long each time, up to 4096;
 *               - it has been at weight_max for more than 8 measurements.
 *               Withdrawn when the target is met four times in a row, when raising is of use
 *               again, or when the flow sends nothing for 16 periods (UNKNOWN).
 *
 * Only measurements decide. A measurement is the mean of the samples since the last one, weighted
 * by completions, as soon as there are min_samples completions. The period in which a weight was
 * changed is left out of that flow's. A flow of which nothing completes while something has waited
 * for more than twice its target counts as measured, with that wait.
 *
 * Why it does not oscillate. A reversal is a step in the direction opposite to the last one.
 *   1. Direction: the service is monotone, more weight does not lengthen a flow's response, so only
 *      the size or the moment of a step can be wrong.
 *   2. Moment: no step up while the response still falls, and none down while it rises, by more
 *      than 1/8 from one measurement to the next: a backlog drains for long after its cause is
 *      gone. Up takes two misses among the last four measurements, down six roomy ones in a row.
 *   3. Size: a step is at most 1/4 of the weight (but at least 1). Each reversal, and each blame
 *      for another's miss, halves it, down to 1/32; eight steps up without one double it.
 *   4. Dead band: between room_percent of T and T nothing is done. Where the smallest step changes
 *      the response by less than the width of that band, a flow that crosses T comes to rest.
 *   5. Rest: close to saturation a service may be as steep as one likes, so that no band is wide
 *      enough. Therefore a way down that failed, which shows in a reversal upwards, forbids the
 *      next for 1024 periods, twice as long each time, up to 16384. A reversal upwards by need
 *      presupposes one downwards by choice, so a steady load sees at most 2 reversals in any 1024
 *      periods. The rest ends early only for a response below half the lowest before the way down
 *      that failed (the load is another one): each such exception needs half the response of the
 *      one before. A flow that has stood at its configured weight for 1024 periods starts afresh.
 *   6. Company: a flow off its target moves up only, and limits end that; of two that drive each
 *      other off, the ones blamed stand back. Flows on target only move by 5.
 * What it costs: a weight that was raised for a load that is gone may stay raised for as long as
 * the rest lasts.
 *
 * Memory and threads: everything is embedded in the caller's objects, nothing is allocated, nothing
 * has to be undone but sched_feedback_remove before a flow's memory goes. Calls on one loop are to
 * be serialised by the caller. No clock: time is counted in periods. Whole numbers only; the same
 * samples always give the same weights. A step is O(flows^2) at worst, in flows with a target that
 * have just gone off it, else O(flows).
 */
#ifndef SPILLWAY_SCHED_FEEDBACK_FEEDBACK_H
#define SPILLWAY_SCHED_FEEDBACK_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Range of weights, as everywhere in sched/. */
#define SCHED_FEEDBACK_WEIGHT_MIN UINT32_C(1)
#define SCHED_FEEDBACK_WEIGHT_MAX UINT32_C(1000000)

/* Longest target: about 78 hours. Longer times in samples count as this. */
#define SCHED_FEEDBACK_TIME_NS_MAX (UINT64_C(1) << 48)

enum sched_feedback_state {
    SCHED_FEEDBACK_NO_TARGET,
    SCHED_FEEDBACK_UNKNOWN,
    SCHED_FEEDBACK_MET,
    SCHED_FEEDBACK_RAISING,
    SCHED_FEEDBACK_LOWERING,
    SCHED_FEEDBACK_AT_LIMIT,
    SCHED_FEEDBACK_INFEASIBLE
};
#define SCHED_FEEDBACK_STATES 7

/* All 0 is a valid set. */
struct sched_feedback_params {
    uint32_t min_samples;  /* completions a measurement takes; 0: 32 */
    uint32_t room_percent; /* much room: response below this part of the target, 10..90; 0: 50 */
};

/* What is wanted of a flow. */
struct sched_feedback_terms {
    uint64_t target_ns; /* response time not to be exceeded; 0: none, the weight is left alone; at
                           most SCHED_FEEDBACK_TIME_NS_MAX */
    uint32_t weight;    /* the configured one: where the loop starts and returns to. Steps are whole
                           numbers of at least 1, so weights below 16 move coarsely */
    uint32_t weight_min; /* 1 <= weight_min <= weight <= weight_max <= 1000000; not looked at */
    uint32_t weight_max; /* without a target */
};

/*
 * What a flow experienced in one period. Means, or one percentile throughout: whichever the target
 * is meant for. Percentiles of several periods are averaged, where a measurement takes several.
 */
struct sched_feedback_sample {
    uint64_t completions;    /* requests that ended; 0: the times below are not looked at */
    uint64_t response_ns;    /* from arrival to the end of the reply */
    uint64_t wait_ns;        /* what of it was spent queued here; when not known: response_ns */
    uint64_t oldest_wait_ns; /* how long the oldest queued request has waited; 0: none, not known */
    uint32_t active;         /* flows of this weight that had requests: 0 or 1, or for a class whose
                                flows are made per key their number */
};

struct sched_feedback;

/* One flow. The caller writes `sample`, and may read what is before it. */
struct sched_feedback_flow {
    uint32_t weight; /* what it should be now */
    bool moved;      /* the last step changed it */
    enum sched_feedback_state state;
    uint64_t measured_ns; /* response at the last measurement; 0: none yet */
    uint32_t reversals;   /* since the flow was added or its terms changed */

    struct sched_feedback_sample sample; /* of this period; cleared by sched_feedback_step */

    /* Private. */
    struct sched_feedback_terms terms;
    struct sched_feedback *loop;
    struct sched_feedback_flow *next;
    struct sched_feedback_flow *prev;
    uint64_t completions;     /* collected for the next measurement */
    unsigned __int128 sum_ns; /* of response times, and of waits */
    unsigned __int128 wait_sum_ns;
    uint64_t before_ns;   /* response at the measurement before the last; 0: none */
    uint64_t service_ns;  /* at the last measurement */
    uint32_t collecting;  /* periods since the collection began */
    uint32_t history;     /* of measurements: bit 0 the last one, 1 = above the target */
    uint32_t meets;       /* measurements in a row on target, */
    uint32_t rooms;       /* and with much room */
    uint32_t limits;      /* misses at weight_max in a row */
    uint32_t step;        /* in 1/1024 of the weight */
    uint32_t run;         /* steps up in a row */
    int8_t direction;     /* of the last step: 1, -1; 0: none yet */
    bool measured;        /* this period brought a measurement */
    bool settling;        /* the weight has just been changed */
    bool doubtful;        /* off target lately: nothing is to be taken from it */
    bool off;             /* off target */
    bool trusted;         /* on target for some time before that */
    bool fell_off;        /* this measurement ended that */
    uint32_t rest;        /* periods until a reversal may be begun by choice */
    uint32_t rest_next;   /* and how long the next rest will be */
    uint64_t lowest_ns;   /* lowest measurement since it was raised last */
    uint64_t calm_ns;     /* the same when the last way down failed; 0: none has */
    uint32_t calms;       /* measurements in a row below half of calm_ns */
    uint32_t still;       /* periods without a step */
    uint32_t since_raise; /* periods */
    uint32_t harms;       /* flows driven off their targets */
    uint32_t stand_back;  /* periods until it may be raised again */
    uint32_t stand_back_next;
};

struct sched_feedback {
    struct sched_feedback_params params;
    struct sched_feedback_flow *flows;
};

/* An empty loop. 0, or -EINVAL when a parameter is out of range. */
int sched_feedback_init(struct sched_feedback *loop, const struct sched_feedback_params *params);

/*
 * Adds a flow, whose memory may be uninitialised, with the configured weight. 0, or -EINVAL when a
 * term is out of range (the flow is not added).
 */
int sched_feedback_add(struct sched_feedback *loop, struct sched_feedback_flow *flow,
                       const struct sched_feedback_terms *terms);

/* Takes a flow out; it must be in the loop. */
void sched_feedback_remove(struct sched_feedback *loop, struct sched_feedback_flow *flow);

/*
 * Changes what is wanted of a flow that is in a loop: it starts again from the configured weight
 * with nothing measured; terms equal to the present ones change nothing. 0, or -EINVAL when one is
 * out of range (the old ones stay).
 */
int sched_feedback_set_terms(struct sched_feedback_flow *flow,
                             const struct sched_feedback_terms *terms);

/*
 * One period has passed. Reads and clears each flow's sample, then sets weight, moved and state.
 * How many flows' weights were changed.
 */
unsigned sched_feedback_step(struct sched_feedback *loop);

/* How many flows are infeasible. O(flows). */
unsigned sched_feedback_infeasible(const struct sched_feedback *loop);

/* "no-target", "unknown", "met", "raising", "lowering", "at-limit", "infeasible". */
const char *sched_feedback_state_name(enum sched_feedback_state state);

#ifdef __cplusplus
}
#endif

#endif
