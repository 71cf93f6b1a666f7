/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and stalls: their text, and what they do to a service. */
#include "loadgen/origin/service/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/units.h"

#define MAX_SLOTS        1000000
#define STEP_TEXT_BYTES  64
#define NS_PER_S         1e9
#define REPEAT_WORD      "repeat"
#define NOTHING          "none"
#define SHARE_MAX        100.0
#define TIME_FACTOR_MOST 1e9
/* Shorter ones that come again would take longer to carry out than they last. */
#define LEAST_TIME_NS 1000000ULL

/* ---------------------------------------------------------------- text */

static int read_capacity(const char *text, struct schedule_step *out)
{
    size_t length = strlen(text);
    uint64_t slots;
    char *end;

    if (length > 2 && strcmp(text + length - 2, "/s") == 0) {
        out->kind = CAPACITY_RATE;
        return units_parse_rate_per_s(text, &out->value) == 0 && out->value > 0 ? 0 : -EINVAL;
    }
    if (length > 1 && text[length - 1] == '%') {
        out->kind = CAPACITY_SHARE;
        out->value = strtod(text, &end) / 100.0;
        return end == text + length - 1 && out->value >= 0 && out->value <= SHARE_MAX ? 0 : -EINVAL;
    }
    out->kind = CAPACITY_SLOTS;
    if (units_parse_count(text, 0, MAX_SLOTS, &slots) != 0)
        return -EINVAL;
    out->value = (double)slots;
    return 0;
}

static int read_step(char *text, struct schedule_step *out)
{
    char *colon = strchr(text, ':');

    out->length_ns = UINT64_MAX;
    if (colon) {
        *colon = '\0';
        if (units_parse_duration_ns(colon + 1, &out->length_ns) != 0 ||
            out->length_ns < LEAST_TIME_NS)
            return -EINVAL;
    }
    return read_capacity(text, out);
}

/* Copies the next word of the text into `word`; false when there is none or it is too long. */
static bool next_word(const char **text, char word[STEP_TEXT_BYTES])
{
    const char *start = *text + strspn(*text, " ,");
    size_t length = strcspn(start, " ,");

    if (length == 0 || length >= STEP_TEXT_BYTES)
        return false;
    memcpy(word, start, length);
    word[length] = '\0';
    *text = start + length;
    *text += strspn(*text, " ,");
    return true;
}

int schedule_read(const char *text, struct schedule *out)
{
    struct schedule schedule = {.count = 0};
    char word[STEP_TEXT_BYTES];

    if (strcmp(text, NOTHING) == 0) {
        *out = schedule;
        return 0;
    }
    while (!schedule.repeat && next_word(&text, word)) {
        if (schedule.count > 0 && strcmp(word, REPEAT_WORD) == 0)
            schedule.repeat = true;
        else if (schedule.count == SCHEDULE_STEPS ||
                 read_step(word, &schedule.steps[schedule.count++]) != 0)
            return -EINVAL;
    }
    if (*text || schedule.count == 0)
        return -EINVAL;
    for (size_t i = 0; i < schedule.count; i++) {
        bool last = i + 1 == schedule.count && !schedule.repeat;

        if (!last && schedule.steps[i].length_ns == UINT64_MAX)
            return -EINVAL;
        if (last)
            schedule.steps[i].length_ns = UINT64_MAX;
    }
    *out = schedule;
    return 0;
}

int stalls_read(const char *text, struct stalls *out)
{
    struct stalls stalls = {0};
    char word[STEP_TEXT_BYTES];

    if (strcmp(text, NOTHING) == 0) {
        *out = stalls;
        return 0;
    }
    while (next_word(&text, word)) {
        uint64_t *value = strncmp(word, "every=", 6) == 0 ? &stalls.every_ns
                          : strncmp(word, "for=", 4) == 0 ? &stalls.length_ns
                                                          : NULL;

        if (!value || units_parse_duration_ns(strchr(word, '=') + 1, value) != 0)
            return -EINVAL;
    }
    if (*text || stalls.length_ns == 0 || stalls.every_ns <= stalls.length_ns ||
        stalls.every_ns < LEAST_TIME_NS)
        return -EINVAL;
    *out = stalls;
    return 0;
}

/* ---------------------------------------------------------------- what it does */

void timeline_init(struct timeline *timeline, struct service *service)
{
    memset(timeline, 0, sizeof(*timeline));
    timeline->service = service;
    timeline->slots = service->slots;
    timeline->change_ns = timeline->stall_ns = UINT64_MAX;
}

static uint64_t added(uint64_t time_ns, uint64_t length_ns)
{
    return length_ns > UINT64_MAX - time_ns ? UINT64_MAX : time_ns + length_ns;
}

/* Gives the service what the step that is on says of it. */
static void apply(struct timeline *timeline, uint64_t now_ns)
{
    const struct schedule_step *step = &timeline->schedule.steps[timeline->step];
    struct service *service = timeline->service;
    uint32_t slots = timeline->slots;

    service->time_factor = 1.0;
    if (timeline->schedule.count > 0) {
        switch (step->kind) {
        case CAPACITY_SHARE:
            slots = (uint32_t)((double)timeline->slots * step->value + 0.5);
            if (slots == 0 && step->value > 0 && timeline->slots > 0)
                slots = 1;
            break;
        case CAPACITY_SLOTS:
            slots = (uint32_t)step->value;
            break;
        case CAPACITY_RATE:
        default:
            if (service->time.mean > 0)
                service->time_factor =
                    (double)slots * NS_PER_S / (step->value * (double)service->time.mean);
            if (service->time_factor > TIME_FACTOR_MOST)
                service->time_factor = TIME_FACTOR_MOST;
            break;
        }
    }
    if (slots != service->slots)
        service_set_slots(service, slots, now_ns);
}

uint64_t timeline_next_ns(const struct timeline *timeline)
{
    uint64_t next_ns = service_next_ns(timeline->service);

    if (timeline->change_ns < next_ns)
        next_ns = timeline->change_ns;
    return timeline->stall_ns < next_ns ? timeline->stall_ns : next_ns;
}

static void next_step(struct timeline *timeline)
{
    uint64_t at_ns = timeline->change_ns;

    timeline->step = (timeline->step + 1) % timeline->schedule.count;
    timeline->change_ns = added(at_ns, timeline->schedule.steps[timeline->step].length_ns);
    apply(timeline, at_ns);
}

static void next_stall(struct timeline *timeline)
{
    uint64_t at_ns = timeline->stall_ns;

    timeline->stall_ns = added(at_ns, timeline->stalls.every_ns);
    service_stall(timeline->service, added(at_ns, timeline->stalls.length_ns), at_ns);
}

void timeline_advance(struct timeline *timeline, uint64_t now_ns)
{
    while (timeline_is_due(timeline, now_ns)) {
        bool step = timeline->change_ns <= timeline->stall_ns;

        /* What ends at the moment of a step makes room in the new capacity, not in the old one. */
        service_advance(timeline->service, step ? timeline->change_ns - 1 : timeline->stall_ns);
        if (step)
            next_step(timeline);
        else
            next_stall(timeline);
    }
    service_advance(timeline->service, now_ns);
}

void timeline_set_slots(struct timeline *timeline, uint32_t slots, uint64_t now_ns)
{
    timeline_advance(timeline, now_ns);
    timeline->slots = slots;
    apply(timeline, now_ns);
}

void timeline_set_time(struct timeline *timeline, const struct distribution *time, uint64_t now_ns)
{
    timeline_advance(timeline, now_ns);
    service_set_time(timeline->service, time);
    apply(timeline, now_ns);
}

void timeline_set_schedule(struct timeline *timeline, const struct schedule *schedule,
                           uint64_t now_ns)
{
    timeline_advance(timeline, now_ns);
    timeline->schedule = *schedule;
    timeline->step = 0;
    timeline->change_ns =
        schedule->count > 0 ? added(now_ns, schedule->steps[0].length_ns) : UINT64_MAX;
    apply(timeline, now_ns);
}

void timeline_set_stalls(struct timeline *timeline, const struct stalls *stalls, uint64_t now_ns)
{
    timeline_advance(timeline, now_ns);
    timeline->stalls = *stalls;
    timeline->stall_ns = stalls->every_ns > 0 ? added(now_ns, stalls->every_ns) : UINT64_MAX;
}
