/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to processes: pause, kill, and processor time by control group or duty cycle. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "loadgen/faults/fault_kinds.h"

#define DUTY_PERIOD_NS 10000000ULL
#define ENDED_POLL_NS  5000000ULL
#define ENDED_LIMIT_NS 5000000000ULL
#define TRIAL_POLL_NS  10000000ULL
#define TRIAL_LIMIT_NS 1000000000ULL

/* ---------------------------------------------------------------- pause */

static bool holds(const struct fault *fault, pid_t pid)
{
    for (size_t i = 0; i < fault->held_count; i++) {
        if (fault->held[i].pid == pid)
            return true;
    }
    return false;
}

static bool stopping(const struct fault *fault)
{
    return fault->state == FAULT_ACTIVE &&
           (fault->spec.kind == FAULT_PAUSE || (fault->spec.kind == FAULT_CPU && !fault->grouped));
}

/* A fault of the same command stops some of what this one holds: each would end what the other
 * does. */
static bool stopped_by_another(const struct fault *fault)
{
    for (size_t i = 0; i < fault->context->count; i++) {
        const struct fault *other = &fault->context->faults[i];

        for (size_t j = 0; other != fault && stopping(other) && j < fault->held_count; j++) {
            if (holds(other, fault->held[j].pid))
                return true;
        }
    }
    return false;
}

/* Somebody else's stop is neither ours to make longer nor to end. */
static enum fault_begun hold_running(struct fault *fault)
{
    if (target_gone(&fault->target))
        return FAULT_TARGET_GONE;
    fault_hold(fault);
    if (stopped_by_another(fault)) {
        fault_release(fault);
        fault_tell(fault, "skipped", "another fault of this command stops the process now");
        return FAULT_SKIPPED;
    }
    if (target_stopped(&fault->target)) {
        fault_release(fault);
        fault_tell(fault, "skipped", "the process was stopped already, by somebody else");
        return FAULT_SKIPPED;
    }
    return fault_note_held(fault) ? FAULT_BEGUN : FAULT_FAILED;
}

static enum fault_begun pause_begin(struct fault *fault)
{
    enum fault_begun begun = hold_running(fault);

    if (begun == FAULT_BEGUN)
        fault_signal_held(fault, SIGSTOP);
    return begun;
}

static bool pause_end(struct fault *fault, uint64_t *again_ns)
{
    (void)again_ns;
    fault_pay(fault);
    fault_release(fault);
    fault_tell(fault, "end", NULL);
    return true;
}

const struct fault_kind_actions fault_pause_actions = {
    .prepare = fault_open_target, .begin = pause_begin, .end = pause_end};

/* ---------------------------------------------------------------- kill */

static enum fault_begun kill_begin(struct fault *fault)
{
    if (target_gone(&fault->target))
        return FAULT_TARGET_GONE;
    if (fault->spec.restart) {
        struct remedy remedy = {.kind = REMEDY_RESTART,
                                .pid = fault->target.pid,
                                .start_ticks = fault->target.start_ticks};

        strncpy(remedy.first, fault->spec.restart, sizeof(remedy.first) - 1);
        if (fault_owe(fault, &remedy) != 0)
            return FAULT_FAILED;
    }
    fault_hold(fault);
    fault_signal_held(fault, fault->spec.signal);
    return FAULT_BEGUN;
}

static void begin_trial(struct fault *fault, pid_t started)
{
    uint64_t next_ns = fault->due_ns + fault->spec.every_ns;

    fault->trial = started;
    fault->trial_until_ns = loop_clock_ns() + TRIAL_LIMIT_NS;
    if (fault->spec.every_ns && next_ns < fault->trial_until_ns)
        fault->trial_until_ns = next_ns;
}

/* True when it is over: the command has ended, or stays. One that ends well has started a service
 * in the background. */
static bool trial_over(struct fault *fault)
{
    int status = 0;
    bool ended = waitpid(fault->trial, &status, WNOHANG) == fault->trial;

    if (!ended && loop_clock_ns() < fault->trial_until_ns)
        return false;
    fault->trial = 0;
    if (ended && status != 0) {
        fprintf(stderr, "spillload fault: restart: '%s' ended at once with %s %d; is it right?\n",
                fault->spec.restart, WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fault->context->failed = true;
    }
    return true;
}

static bool kill_end(struct fault *fault, uint64_t *again_ns)
{
    *again_ns = TRIAL_POLL_NS;
    if (fault->trial)
        return trial_over(fault);
    uint64_t overdue_ns = loop_clock_ns() - fault->due_ns;

    if (fault->spec.restart && !target_gone(&fault->target) &&
        overdue_ns < fault->spec.for_ns + ENDED_LIMIT_NS) {
        *again_ns = ENDED_POLL_NS;
        return false;
    }
    pid_t started = fault_pay(fault);

    fault_release(fault);
    if (started) {
        target_close(&fault->target);
        fault->spec.pid = started;
        if (target_open(started, &fault->target) != 0)
            fault->target.pidfd = -1;
    }
    fault_tell(fault, "end", started ? "started again" : NULL);
    if (started)
        begin_trial(fault, started);
    return started == 0;
}

const struct fault_kind_actions fault_kill_actions = {
    .prepare = fault_open_target, .begin = kill_begin, .end = kill_end};

/* ---------------------------------------------------------------- cpu, by duty cycle */

static void duty_fire(struct loop_timer *timer)
{
    struct fault *fault = (void *)((char *)timer - offsetof(struct fault, duty_timer));
    uint64_t runs_ns = (uint64_t)(fault->spec.quota * (double)DUTY_PERIOD_NS);

    fault->duty_stopped = !fault->duty_stopped;
    fault_signal_held(fault, fault->duty_stopped ? SIGSTOP : SIGCONT);
    loop_timer_set(fault->context->loop, timer,
                   fault->context->loop->now_ns +
                       (fault->duty_stopped ? DUTY_PERIOD_NS - runs_ns : runs_ns));
}

static enum fault_begun duty_begin(struct fault *fault)
{
    enum fault_begun begun = hold_running(fault);

    if (begun == FAULT_BEGUN) {
        fault->duty_stopped = false;
        duty_fire(&fault->duty_timer);
    }
    return begun;
}

/* ---------------------------------------------------------------- cpu, by control group */

static int group_prepare(struct fault *fault)
{
    struct remedy remedy = {.kind = REMEDY_DISSOLVE};
    int error = cgroup_plan(fault->target.pid, &fault->cgroup);

    if (error)
        return error;
    memcpy(remedy.first, fault->cgroup.folder, sizeof(remedy.first));
    memcpy(remedy.second, fault->cgroup.origin, sizeof(remedy.second));
    if (fault_owe(fault, &remedy) != 0)
        return -EIO;
    error = cgroup_make(&fault->cgroup);
    if (error)
        fault_pay(fault);
    fault->grouped = error == 0;
    return error;
}

/* Descendants that live in other groups stay there: they could not be told apart on the way back.
 */
static int group_move(struct fault *fault)
{
    for (size_t i = 0; i < fault->held_count; i++) {
        const struct target *one = &fault->held[i];

        if (!cgroup_same_origin(&fault->cgroup, one->pid) || target_gone(one))
            continue;
        int error = cgroup_move(&fault->cgroup, one->pid);

        if (error && error != -ESRCH)
            return error;
    }
    return 0;
}

static enum fault_begun group_begin(struct fault *fault)
{
    int error = 0;

    if (target_gone(&fault->target))
        return FAULT_TARGET_GONE;
    if (!fault->moved || fault->spec.children) {
        fault_hold(fault);
        error = group_move(fault);
        fault->moved = true;
    }
    fault->counted_before = cgroup_throttled(&fault->cgroup);
    if (!error)
        error = cgroup_limit(&fault->cgroup, fault->spec.quota);
    if (error) {
        fprintf(stderr, "spillload fault: cpu,pid=%d: control group %s: %s; try means=duty\n",
                fault->spec.pid, fault->cgroup.folder, strerror(-error));
        return FAULT_FAILED;
    }
    return FAULT_BEGUN;
}

/* ---------------------------------------------------------------- cpu */

static int cpu_prepare(struct fault *fault)
{
    int error;

    fault->duty_timer.fire = duty_fire;
    if (fault_open_target(fault) != 0)
        return -1;
    if (fault->spec.means == FAULT_MEANS_DUTY)
        return 0;
    error = group_prepare(fault);
    if (!error)
        return 0;
    if (fault->spec.means == FAULT_MEANS_AUTO && fault->spec.quota < 1)
        return 0;
    fprintf(stderr,
            "spillload fault: cpu,pid=%d: no control group with a quota can be made: %s; try "
            "means=duty with a quota below 100%%, or as root\n",
            fault->spec.pid,
            error == -ENOTSUP ? "no cpu controller is mounted or handed down" : strerror(-error));
    return -1;
}

static enum fault_begun cpu_begin(struct fault *fault)
{
    return fault->grouped ? group_begin(fault) : duty_begin(fault);
}

static bool cpu_end(struct fault *fault, uint64_t *again_ns)
{
    if (!fault->grouped) {
        loop_timer_cancel(fault->context->loop, &fault->duty_timer);
        return pause_end(fault, again_ns);
    }
    uint64_t throttled = cgroup_throttled(&fault->cgroup) - fault->counted_before;
    int error = cgroup_limit(&fault->cgroup, 0);

    if (error) {
        fprintf(stderr, "spillload fault: cpu,pid=%d: control group %s keeps its limit: %s\n",
                fault->spec.pid, fault->cgroup.folder, strerror(-error));
        fault->context->failed = true;
    }
    fault_tell_count(fault, "end", "throttled", throttled);
    return true;
}

static void cpu_finish(struct fault *fault)
{
    loop_timer_cancel(fault->context->loop, &fault->duty_timer);
}

const struct fault_kind_actions fault_cpu_actions = {
    .prepare = cpu_prepare, .begin = cpu_begin, .end = cpu_end, .finish = cpu_finish};
