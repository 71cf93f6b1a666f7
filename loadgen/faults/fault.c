/* SPDX-License-Identifier: Apache-2.0 */
/* When a fault begins and ends, and what it owes. */
#include "loadgen/faults/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/faults/fault_kinds.h"

static const struct fault_kind_actions *actions_of(const struct fault *fault)
{
    static const struct fault_kind_actions *const actions[FAULT_KINDS] = {
        [FAULT_CPU] = &fault_cpu_actions,         [FAULT_MEMORY] = &fault_memory_actions,
        [FAULT_PAUSE] = &fault_pause_actions,     [FAULT_KILL] = &fault_kill_actions,
        [FAULT_NETWORK] = &fault_network_actions,
    };

    return actions[fault->spec.kind];
}

/* ---------------------------------------------------------------- what it owes */

int fault_owe(struct fault *fault, const struct remedy *remedy)
{
    int entry = journal_note(fault->context->journal, remedy);

    if (entry < 0)
        return -1;
    fault->owed = memory_grow(fault->owed, (fault->owed_count + 1) * sizeof(*fault->owed));
    fault->owed[fault->owed_count++] = (struct fault_owed){.entry = entry, .remedy = *remedy};
    return 0;
}

pid_t fault_pay(struct fault *fault)
{
    pid_t started = 0;

    while (fault->owed_count > 0) {
        const struct fault_owed *owed = &fault->owed[--fault->owed_count];
        pid_t one;

        if (remedy_apply(&owed->remedy, &one) != 0) {
            fault->context->failed = true;
            continue;
        }
        journal_strike(fault->context->journal, owed->entry);
        if (one)
            started = one;
    }
    return started;
}

/* ---------------------------------------------------------------- whom it is done to */

int fault_open_target(struct fault *fault)
{
    char why[TARGET_WHY_BYTES];
    int error = target_open(fault->spec.pid, &fault->target);

    if (error) {
        fprintf(stderr, "spillload fault: %s,pid=%d: %s\n", fault_kind_name(fault->spec.kind),
                fault->spec.pid, error == -ESRCH ? "there is no such process" : strerror(-error));
        return -1;
    }
    if (!target_allowed(&fault->target, fault->context->force, why)) {
        fprintf(stderr, "spillload fault: %s,pid=%d: %s\n", fault_kind_name(fault->spec.kind),
                fault->spec.pid, why);
        return -1;
    }
    return 0;
}

void fault_release(struct fault *fault)
{
    while (fault->held_count > 0)
        target_close(&fault->held[--fault->held_count]);
}

void fault_hold(struct fault *fault)
{
    char why[TARGET_WHY_BYTES];
    struct target *found;

    fault_release(fault);
    if (target_reopen(fault->target.pid, fault->target.start_ticks, &fault->held[0]) == 0)
        fault->held_count = 1;
    if (!fault->spec.children)
        return;
    found = memory_zeroed(FAULT_MAX_HELD, sizeof(*found));
    size_t count = target_descendants(fault->target.pid, found, FAULT_MAX_HELD);

    for (size_t i = 0; i < count; i++) {
        if (fault->held_count < FAULT_MAX_HELD &&
            target_allowed(&found[i], fault->context->force, why))
            fault->held[fault->held_count++] = found[i];
        else
            target_close(&found[i]);
    }
    free(found);
}

bool fault_note_held(struct fault *fault)
{
    for (size_t i = 0; i < fault->held_count; i++) {
        struct remedy remedy = {.kind = REMEDY_CONTINUE,
                                .pid = fault->held[i].pid,
                                .start_ticks = fault->held[i].start_ticks};

        if (fault_owe(fault, &remedy) != 0)
            return false;
    }
    return true;
}

void fault_signal_held(struct fault *fault, int signal)
{
    for (size_t i = 0; i < fault->held_count; i++) {
        int error = target_signal(&fault->held[i], signal);

        if (error && error != -ESRCH) {
            fprintf(stderr, "spillload fault: %s,pid=%d: %s\n", fault_kind_name(fault->spec.kind),
                    fault->held[i].pid, strerror(-error));
            fault->context->failed = true;
        }
    }
}

/* ---------------------------------------------------------------- telling */

static struct event event_of(const struct fault *fault, const char *name)
{
    return (struct event){.name = name,
                          .fault = fault->index,
                          .kind = fault_kind_name(fault->spec.kind),
                          .pid = fault->spec.pid};
}

void fault_tell(struct fault *fault, const char *name, const char *why)
{
    struct event event = event_of(fault, name);

    event.why = why;
    if (strcmp(name, "begin") == 0 && fault_how(fault)[0])
        event.how = fault_how(fault);
    events_tell(fault->context->events, &event, loop_clock_ns());
}

void fault_tell_count(struct fault *fault, const char *name, const char *unit, uint64_t count)
{
    struct event event = event_of(fault, name);

    event.counted = true;
    event.unit = unit;
    event.count = count;
    events_tell(fault->context->events, &event, loop_clock_ns());
}

const char *fault_how(const struct fault *fault)
{
    if (fault->spec.kind != FAULT_CPU)
        return "";
    if (!fault->grouped)
        return "stop and continue";
    return fault->cgroup.version == 2 ? "cgroup v2" : "cgroup v1";
}

/* ---------------------------------------------------------------- the timeline */

/* Undoes what is left of it; the last one tells the context. */
static void be_over(struct fault *fault)
{
    struct fault_context *context = fault->context;

    if (fault->state == FAULT_OVER)
        return;
    fault->state = FAULT_OVER;
    loop_timer_cancel(context->loop, &fault->timer);
    if (actions_of(fault)->finish)
        actions_of(fault)->finish(fault);
    fault_pay(fault);
    fault_release(fault);
    context->left--;
    if (context->left == 0 || context->failed)
        context->over(context);
}

static void rest(struct fault *fault)
{
    uint64_t now_ns = loop_clock_ns();

    fault->state = FAULT_RESTING;
    fault->times_done++;
    if (fault->context->failed || (fault->spec.times && fault->times_done >= fault->spec.times)) {
        be_over(fault);
        return;
    }
    fault->due_ns += fault->spec.every_ns;
    if (fault->due_ns < now_ns)
        fault->due_ns = now_ns;
    loop_timer_set(fault->context->loop, &fault->timer, fault->due_ns);
}

static void begin(struct fault *fault)
{
    switch (actions_of(fault)->begin(fault)) {
    case FAULT_BEGUN:
        fault->state = FAULT_ACTIVE;
        fault_tell(fault, "begin", NULL);
        loop_timer_set(fault->context->loop, &fault->timer, fault->due_ns + fault->spec.for_ns);
        return;
    case FAULT_SKIPPED:
        rest(fault);
        return;
    case FAULT_TARGET_GONE:
        fault_tell(fault, "gone", NULL);
        break;
    default:
        fault->context->failed = true;
        break;
    }
    be_over(fault);
}

static void fire(struct loop_timer *timer)
{
    struct fault *fault = (void *)((char *)timer - offsetof(struct fault, timer));
    uint64_t again_ns = 0;

    if (fault->state != FAULT_ACTIVE) {
        begin(fault);
        return;
    }
    if (actions_of(fault)->end(fault, &again_ns))
        rest(fault);
    else
        loop_timer_set(fault->context->loop, timer, loop_clock_ns() + again_ns);
}

int fault_prepare(struct fault *fault, struct fault_context *context, size_t index,
                  const struct fault_spec *spec)
{
    *fault = (struct fault){.spec = *spec, .index = index, .context = context};
    fault->timer.fire = fire;
    fault->target.pidfd = -1;
    context->left++;
    return actions_of(fault)->prepare(fault);
}

void fault_start(struct fault *fault, uint64_t start_ns)
{
    fault->start_ns = start_ns;
    fault->due_ns = start_ns + fault->spec.at_ns;
    loop_timer_set(fault->context->loop, &fault->timer, fault->due_ns);
}

void fault_stop(struct fault *fault)
{
    if (!fault->context)
        return;
    be_over(fault);
    target_close(&fault->target);
    fault_spec_fini(&fault->spec);
    free(fault->owed);
    fault->owed = NULL;
    fault->context = NULL;
}
