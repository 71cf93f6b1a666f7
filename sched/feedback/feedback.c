/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback.c: the loop that moves weights towards response-time targets. The rules, and why they do
 * not oscillate, are in feedback.h.
 *
 * A step has three passes over the flows: measure each, see who was driven off its target by whom,
 * then decide for each. Decisions of one period see the weights as they were at its beginning.
 */
#include "sched/feedback/feedback.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MIN_SAMPLES_DEFAULT  32
#define ROOM_PERCENT_DEFAULT 50

/* Steps, in 1/1024 of the weight. */
#define STEP_WHOLE 1024
#define STEP_MAX   256
#define STEP_MIN   32
#define RUN_LONG   8

/* Measurements in a row. */
#define MISSES_TO_RAISE 2
#define MISSES_AMONG    4
#define ROOMS_TO_LOWER  6
#define MEETS_TO_TRUST  4
#define MEETS_TO_GIVE   16
#define LIMITS_TO_SAY   8

/* Periods. */
#define REST_MIN       1024
#define REST_MAX       16384
#define STAND_BACK_MIN 64
#define STAND_BACK_MAX 4096
#define BLAME_PERIODS  8
#define COLLECT_MAX    256
#define IDLE_MAX       16

#define HARMS_TO_STAND_BACK 3

/* A response that has moved by less than this part of itself is not on its way. */
#define TREND_PART 8

/* The part of the active weight that must be there to take from. */
#define GIVERS_PART 16

/* What one flow's decision needs to know of all. */
struct surroundings {
    uint64_t active_weight;
    uint64_t giving_weight;
    bool help_wanted; /* a flow is off its target and cannot raise its own weight */
    unsigned missing;
};

static bool terms_valid(const struct sched_feedback_terms *terms)
{
    if (terms->weight < SCHED_FEEDBACK_WEIGHT_MIN || terms->weight > SCHED_FEEDBACK_WEIGHT_MAX)
        return false;
    if (terms->target_ns == 0)
        return true;
    return terms->target_ns <= SCHED_FEEDBACK_TIME_NS_MAX &&
           terms->weight_min >= SCHED_FEEDBACK_WEIGHT_MIN && terms->weight_min <= terms->weight &&
           terms->weight <= terms->weight_max && terms->weight_max <= SCHED_FEEDBACK_WEIGHT_MAX;
}

int sched_feedback_init(struct sched_feedback *loop, const struct sched_feedback_params *params)
{
    if (params->room_percent != 0 && (params->room_percent < 10 || params->room_percent > 90))
        return -EINVAL;
    *loop = (struct sched_feedback){.params = *params};
    if (loop->params.min_samples == 0)
        loop->params.min_samples = MIN_SAMPLES_DEFAULT;
    if (loop->params.room_percent == 0)
        loop->params.room_percent = ROOM_PERCENT_DEFAULT;
    return 0;
}

static struct sched_feedback_flow fresh_flow(const struct sched_feedback_terms *terms)
{
    return (struct sched_feedback_flow){
        .weight = terms->weight,
        .state = terms->target_ns != 0 ? SCHED_FEEDBACK_UNKNOWN : SCHED_FEEDBACK_NO_TARGET,
        .terms = *terms,
        .step = STEP_MAX,
        .rest_next = REST_MIN,
        .lowest_ns = UINT64_MAX,
        .since_raise = BLAME_PERIODS,
        .stand_back_next = STAND_BACK_MIN,
    };
}

int sched_feedback_add(struct sched_feedback *loop, struct sched_feedback_flow *flow,
                       const struct sched_feedback_terms *terms)
{
    if (!terms_valid(terms))
        return -EINVAL;
    *flow = fresh_flow(terms);
    flow->loop = loop;
    flow->next = loop->flows;
    if (flow->next != NULL)
        flow->next->prev = flow;
    loop->flows = flow;
    return 0;
}

void sched_feedback_remove(struct sched_feedback *loop, struct sched_feedback_flow *flow)
{
    if (flow->prev != NULL)
        flow->prev->next = flow->next;
    else
        loop->flows = flow->next;
    if (flow->next != NULL)
        flow->next->prev = flow->prev;
    flow->loop = NULL;
    flow->next = NULL;
    flow->prev = NULL;
}

static bool terms_equal(const struct sched_feedback_terms *one,
                        const struct sched_feedback_terms *other)
{
    return one->target_ns == other->target_ns && one->weight == other->weight &&
           one->weight_min == other->weight_min && one->weight_max == other->weight_max;
}

int sched_feedback_set_terms(struct sched_feedback_flow *flow,
                             const struct sched_feedback_terms *terms)
{
    if (!terms_valid(terms))
        return -EINVAL;
    if (terms_equal(&flow->terms, terms))
        return 0;
    struct sched_feedback_flow changed = fresh_flow(terms);
    changed.loop = flow->loop;
    changed.next = flow->next;
    changed.prev = flow->prev;
    *flow = changed;
    return 0;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static uint64_t limited_ns(uint64_t time_ns)
{
    return time_ns < SCHED_FEEDBACK_TIME_NS_MAX ? time_ns : SCHED_FEEDBACK_TIME_NS_MAX;
}

static void discard(struct sched_feedback_flow *flow)
{
    flow->completions = 0;
    flow->sum_ns = 0;
    flow->wait_sum_ns = 0;
    flow->collecting = 0;
}

static void count(uint32_t *counter)
{
    if (*counter < UINT32_MAX)
        ++*counter;
}

static bool is_missing(const struct sched_feedback_flow *flow)
{
    const unsigned lately = flow->history & ((1U << MISSES_AMONG) - 1);

    return (flow->history & 1) != 0 && __builtin_popcount(lately) >= MISSES_TO_RAISE;
}

static void go_off_target(struct sched_feedback_flow *flow)
{
    flow->off = true;
    flow->doubtful = true;
    flow->fell_off = flow->trusted;
    flow->trusted = false;
}

static void take_measurement(struct sched_feedback_flow *flow, uint64_t response_ns,
                             uint64_t service_ns)
{
    const uint64_t target_ns = flow->terms.target_ns;

    flow->measured = true;
    flow->before_ns = flow->measured_ns;
    flow->measured_ns = response_ns != 0 ? response_ns : 1;
    flow->service_ns = service_ns;
    discard(flow);
    flow->history <<= 1;
    if (response_ns > target_ns) {
        flow->history |= 1;
        flow->rooms = 0;
        flow->calms = 0;
        flow->meets = 0;
        if (is_missing(flow))
            go_off_target(flow);
        return;
    }
    flow->limits = 0;
    count(&flow->meets);
    flow->off = false;
    if (flow->meets >= MEETS_TO_TRUST)
        flow->trusted = true;
    if (flow->measured_ns < flow->lowest_ns)
        flow->lowest_ns = flow->measured_ns;
    if (flow->measured_ns < flow->calm_ns / 2)
        count(&flow->calms);
    else
        flow->calms = 0;
    if (flow->meets >= MEETS_TO_GIVE)
        flow->doubtful = false;
    if (response_ns < target_ns / 100 * flow->loop->params.room_percent)
        count(&flow->rooms);
    else
        flow->rooms = 0;
}

/* Too little comes to say anything; the weight rests where it is. */
static void forget(struct sched_feedback_flow *flow)
{
    discard(flow);
    flow->state = SCHED_FEEDBACK_UNKNOWN;
    flow->measured_ns = 0;
    flow->before_ns = 0;
    flow->history = 0;
    flow->meets = 0;
    flow->rooms = 0;
    flow->limits = 0;
    flow->off = false;
    flow->doubtful = false;
    flow->trusted = false;
}

static void measure(struct sched_feedback_flow *flow)
{
    const struct sched_feedback_sample sample = flow->sample;
    const uint64_t completions = sample.completions < UINT32_MAX ? sample.completions : UINT32_MAX;
    const uint64_t response_ns = limited_ns(sample.response_ns);
    const uint64_t oldest_ns = limited_ns(sample.oldest_wait_ns);

    flow->measured = false;
    flow->fell_off = false;
    if (flow->settling) {
        flow->settling = false;
        return;
    }
    flow->completions += completions;
    flow->sum_ns += (unsigned __int128)response_ns * completions;
    flow->wait_sum_ns +=
        (unsigned __int128)(sample.wait_ns < response_ns ? sample.wait_ns : response_ns) *
        completions;
    flow->collecting++;
    if (flow->completions >= flow->loop->params.min_samples) {
        const uint64_t mean_ns = (uint64_t)(flow->sum_ns / flow->completions);
        take_measurement(flow, mean_ns,
                         mean_ns - (uint64_t)(flow->wait_sum_ns / flow->completions));
    } else if (completions == 0 && oldest_ns > 2 * flow->terms.target_ns) {
        take_measurement(flow, oldest_ns, 0);
    } else if (flow->collecting >= COLLECT_MAX ||
               (flow->collecting >= IDLE_MAX && flow->completions == 0 && oldest_ns == 0)) {
        forget(flow);
    }
}

/* ---- who is off target, and by whom ------------------------------------------------------- */

static void shorten_step(struct sched_feedback_flow *flow)
{
    flow->run = 0;
    if (flow->step > STEP_MIN)
        flow->step /= 2;
}

/* Gives one more reason to doubt for each other flow that has been raised lately. */
static void blame_for(struct sched_feedback *loop, const struct sched_feedback_flow *victim)
{
    for (struct sched_feedback_flow *flow = loop->flows; flow != NULL; flow = flow->next) {
        if (flow == victim || flow->since_raise >= BLAME_PERIODS)
            continue;
        flow->since_raise = BLAME_PERIODS;
        shorten_step(flow);
        if (++flow->harms < HARMS_TO_STAND_BACK)
            continue;
        flow->stand_back = flow->stand_back_next;
        if (flow->stand_back_next < STAND_BACK_MAX)
            flow->stand_back_next *= 2;
    }
}

static bool has_something_to_give(const struct sched_feedback_flow *flow)
{
    return flow->terms.target_ns == 0 || !flow->doubtful;
}

static struct surroundings look_round(const struct sched_feedback *loop)
{
    struct surroundings around = {0};

    for (const struct sched_feedback_flow *flow = loop->flows; flow != NULL; flow = flow->next) {
        const uint64_t weight = (uint64_t)flow->weight * flow->sample.active;
        around.active_weight += weight;
        if (has_something_to_give(flow))
            around.giving_weight += weight;
        if (!flow->off)
            continue;
        around.missing++;
        around.help_wanted |= flow->weight == flow->terms.weight_max;
    }
    return around;
}

/* ---- deciding ----------------------------------------------------------------------------- */

/* Going up again says that the way down was a mistake: no other one before the rest is over. */
static void reverse(struct sched_feedback_flow *flow, int8_t direction)
{
    count(&flow->reversals);
    shorten_step(flow);
    flow->rest = 0;
    if (direction < 0)
        return;
    flow->rest = flow->rest_next;
    flow->calm_ns = flow->lowest_ns;
    flow->calms = 0;
    if (flow->rest_next < REST_MAX)
        flow->rest_next *= 2;
}

/* One step towards `goal`, never past it. */
static void move(struct sched_feedback_flow *flow, uint32_t goal)
{
    const int8_t direction = goal > flow->weight ? 1 : -1;
    const uint32_t away = goal > flow->weight ? goal - flow->weight : flow->weight - goal;
    uint32_t size = (uint32_t)((uint64_t)flow->weight * flow->step / STEP_WHOLE);

    if (flow->direction == -direction) {
        reverse(flow, direction);
        size = (uint32_t)((uint64_t)flow->weight * flow->step / STEP_WHOLE);
    }
    flow->direction = direction;
    if (direction > 0 && ++flow->run >= RUN_LONG && flow->step < STEP_MAX) {
        flow->run = 0;
        flow->step *= 2;
    }
    size = size > 0 ? size : 1;
    size = size < away ? size : away;
    flow->weight = direction > 0 ? flow->weight + size : flow->weight - size;
    flow->moved = true;
    flow->settling = true;
    flow->still = 0;
    flow->history &= 1;
    flow->rooms = 0;
    flow->calms = 0;
    if (direction > 0) {
        flow->since_raise = 0;
        flow->lowest_ns = UINT64_MAX;
    }
    discard(flow);
}

static bool is_falling(const struct sched_feedback_flow *flow)
{
    return flow->before_ns != 0 &&
           flow->measured_ns + flow->before_ns / TREND_PART < flow->before_ns;
}

static bool is_rising(const struct sched_feedback_flow *flow)
{
    return flow->before_ns != 0 &&
           flow->measured_ns > flow->before_ns + flow->before_ns / TREND_PART;
}

/* Whether raising the weight of a flow that is off its target is of no use. */
static bool is_beyond_help(const struct sched_feedback_flow *flow,
                           const struct surroundings *around)
{
    return flow->service_ns > flow->terms.target_ns || flow->stand_back > 0 ||
           around->giving_weight * GIVERS_PART < around->active_weight;
}

static void decide_missing(struct sched_feedback_flow *flow, const struct surroundings *around)
{
    const bool at_limit = flow->weight == flow->terms.weight_max;

    if (at_limit)
        count(&flow->limits);
    else
        flow->limits = 0;
    if (is_beyond_help(flow, around) || flow->limits > LIMITS_TO_SAY) {
        flow->state = SCHED_FEEDBACK_INFEASIBLE;
    } else if (at_limit) {
        flow->state = SCHED_FEEDBACK_AT_LIMIT;
    } else {
        flow->state = SCHED_FEEDBACK_RAISING;
        if (!is_falling(flow))
            move(flow, flow->terms.weight_max);
    }
}

/*
 * By choice, so a change of direction waits for the rest to end, or for a load that has clearly
 * gone down since the last one failed.
 */
static void move_if_rested(struct sched_feedback_flow *flow, uint32_t goal,
                           enum sched_feedback_state state)
{
    const int8_t direction = goal > flow->weight ? 1 : -1;

    if (flow->direction == -direction && flow->rest > 0 && flow->calms < ROOMS_TO_LOWER)
        return;
    move(flow, goal);
    flow->state = state;
}

static void decide_meeting(struct sched_feedback_flow *flow, const struct surroundings *around)
{
    const uint32_t home = flow->terms.weight;
    const uint32_t least = around->help_wanted ? flow->terms.weight_min : home;
    const bool stays =
        flow->state == SCHED_FEEDBACK_INFEASIBLE || flow->state == SCHED_FEEDBACK_AT_LIMIT;

    if (stays && flow->meets < MEETS_TO_TRUST)
        return;
    flow->state = SCHED_FEEDBACK_MET;
    if (flow->weight > least && flow->rooms >= ROOMS_TO_LOWER && !is_rising(flow))
        move_if_rested(flow, least, SCHED_FEEDBACK_LOWERING);
    else if (flow->weight < home && around->missing == 0 && flow->meets >= MEETS_TO_GIVE)
        move_if_rested(flow, home, SCHED_FEEDBACK_RAISING);
}

static void decide(struct sched_feedback_flow *flow, const struct surroundings *around)
{
    if (is_missing(flow))
        decide_missing(flow, around);
    else if (flow->meets > 0)
        decide_meeting(flow, around);
    if (flow->meets >= STAND_BACK_MIN && flow->harms > 0) {
        flow->harms = 0;
        flow->stand_back_next = STAND_BACK_MIN;
    }
}

static void count_down(uint32_t *periods)
{
    if (*periods > 0)
        --*periods;
}

/* A flow that has been at its configured weight for long begins again, its past forgotten. */
static void pass_period(struct sched_feedback_flow *flow)
{
    count_down(&flow->rest);
    count_down(&flow->stand_back);
    if (flow->since_raise < BLAME_PERIODS)
        flow->since_raise++;
    count(&flow->still);
    if (flow->still < REST_MIN || flow->weight != flow->terms.weight)
        return;
    flow->direction = 0;
    flow->step = STEP_MAX;
    flow->rest = 0;
    flow->rest_next = REST_MIN;
    flow->calm_ns = 0;
}

unsigned sched_feedback_step(struct sched_feedback *loop)
{
    struct sched_feedback_flow *flow;
    unsigned moved = 0;

    for (flow = loop->flows; flow != NULL; flow = flow->next) {
        flow->moved = false;
        if (flow->terms.target_ns == 0)
            continue;
        pass_period(flow);
        measure(flow);
    }
    for (flow = loop->flows; flow != NULL; flow = flow->next)
        if (flow->fell_off)
            blame_for(loop, flow);
    const struct surroundings around = look_round(loop);
    for (flow = loop->flows; flow != NULL; flow = flow->next) {
        if (flow->measured)
            decide(flow, &around);
        moved += flow->moved;
        flow->sample = (struct sched_feedback_sample){0};
    }
    return moved;
}

unsigned sched_feedback_infeasible(const struct sched_feedback *loop)
{
    unsigned infeasible = 0;

    for (const struct sched_feedback_flow *flow = loop->flows; flow != NULL; flow = flow->next)
        infeasible += flow->state == SCHED_FEEDBACK_INFEASIBLE;
    return infeasible;
}

const char *sched_feedback_state_name(enum sched_feedback_state state)
{
    static const char *const names[SCHED_FEEDBACK_STATES] = {
        [SCHED_FEEDBACK_NO_TARGET] = "no-target",
        [SCHED_FEEDBACK_UNKNOWN] = "unknown",
        [SCHED_FEEDBACK_MET] = "met",
        [SCHED_FEEDBACK_RAISING] = "raising",
        [SCHED_FEEDBACK_LOWERING] = "lowering",
        [SCHED_FEEDBACK_AT_LIMIT] = "at-limit",
        [SCHED_FEEDBACK_INFEASIBLE] = "infeasible"};

    return (unsigned)state < SCHED_FEEDBACK_STATES ? names[state] : NULL;
}
