/* SPDX-License-Identifier: Apache-2.0 */
/* Faults as a child of the run. */
#include "loadgen/commands/run_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

#define FIXED_ARGUMENTS 5
#define FAULTS_TOLD     64

static void become_child(int input, int output, char *const *texts, size_t count, uint64_t limit_ns)
{
    char **arguments = memory_zeroed(FIXED_ARGUMENTS + count + 1, sizeof(*arguments));
    char limit[40];

    snprintf(limit, sizeof(limit), "--limit=%llums", (unsigned long long)(limit_ns / 1000000));
    arguments[0] = (char[]){"spillload"};
    arguments[1] = (char[]){"fault"};
    arguments[2] = (char[]){"--hold"};
    arguments[3] = (char[]){"--json-events"};
    arguments[4] = limit;
    for (size_t i = 0; i < count; i++)
        arguments[FIXED_ARGUMENTS + i] = texts[i];
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0)
        execv("/proc/self/exe", arguments);
    fprintf(stderr, "spillload: faults: %s\n", strerror(errno));
    _exit(1);
}

int run_faults_start(struct run_faults *faults, char *const *texts, size_t count, uint64_t limit_ns)
{
    int in[2];
    int out[2];

    if (count == 0)
        return 0;
    faults->texts = texts;
    faults->count = count;
    if (pipe2(in, O_CLOEXEC) != 0)
        return -errno;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return -errno;
    }
    fflush(NULL);
    faults->child = fork();
    if (faults->child == 0)
        become_child(in[0], out[1], texts, count, limit_ns);
    close(in[0]);
    close(out[1]);
    faults->input = in[1];
    faults->output.fd = out[0];
    faults->state = RUN_FAULTS_PREPARING;
    if (faults->child > 0)
        return 0;
    faults->state = RUN_FAULTS_ENDED;
    return -EAGAIN;
}

/* What the child says is one JSON object per line. */
static void take_line(struct run_faults *faults)
{
    json_t *event = json_loads(faults->line, 0, NULL);
    const char *name = "";
    const char *kind = "";
    json_int_t number = -1;
    double at_s = 0;

    json_unpack(event, "{s:s, s?I, s?s, s?F}", "event", &name, "fault", &number, "kind", &kind,
                "at_s", &at_s);
    bool begins = strcmp(name, "begin") == 0;

    if (number >= 0 && number < FAULTS_TOLD)
        faults->heard |= UINT64_C(1) << number;
    if (strcmp(name, "ready") == 0) {
        if (faults->state == RUN_FAULTS_PREPARING)
            faults->state = RUN_FAULTS_READY;
    } else if (number >= 0 && (begins || strcmp(name, "end") == 0)) {
        faults->mark(faults, (uint64_t)number, begins, at_s, kind);
        if (!faults->quiet)
            fprintf(stderr, "spillload: fault %s %s at %.3f s\n", kind, begins ? "begins" : "ends",
                    at_s);
    } else if (!faults->quiet && strcmp(name, "done") != 0) {
        fprintf(stderr, "spillload: fault: %s\n", faults->line);
    }
    json_decref(event);
}

/* False at the end of what it says. */
static bool take_output(struct run_faults *faults)
{
    char data[512];
    ssize_t got;

    while ((got = read(faults->output.fd, data, sizeof(data))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (data[i] != '\n') {
                if (faults->length + 1 < sizeof(faults->line))
                    faults->line[faults->length++] = data[i];
                continue;
            }
            faults->line[faults->length] = '\0';
            faults->length = 0;
            take_line(faults);
        }
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void output_ready(struct loop_io *io, uint32_t events)
{
    struct run_faults *faults = (void *)((char *)io - offsetof(struct run_faults, output));

    (void)events;
    if (take_output(faults))
        return;
    if (faults->state == RUN_FAULTS_PREPARING)
        loop_stop(faults->loop);
    else if (faults->state == RUN_FAULTS_READY)
        fputs("spillload: the faults' process has ended before they began\n", stderr);
    faults->state = RUN_FAULTS_ENDED;
    loop_remove(faults->loop, io);
    faults->loop = NULL;
}

int run_faults_listen(struct run_faults *faults, struct loop *loop)
{
    if (faults->state == RUN_FAULTS_NONE)
        return 0;
    faults->output.ready = output_ready;
    fcntl(faults->output.fd, F_SETFL, O_NONBLOCK);
    int error = loop_add(loop, &faults->output);

    if (!error)
        faults->loop = loop;
    return error;
}

bool run_faults_ready(const struct run_faults *faults)
{
    return faults->state != RUN_FAULTS_PREPARING;
}

void run_faults_go(struct run_faults *faults)
{
    if (faults->state != RUN_FAULTS_READY)
        return;
    if (write(faults->input, "go\n", 3) != 3)
        fputs("spillload: the faults' process does not listen; there will be none\n", stderr);
    faults->state = RUN_FAULTS_RUNNING;
}

static void tell_unbegun(const struct run_faults *faults)
{
    for (size_t i = 0; i < faults->count && i < FAULTS_TOLD; i++) {
        if (!(faults->heard >> i & 1))
            fprintf(stderr,
                    "warning: fault %s did not begin: the load was over before its time; choose an "
                    "earlier at= or a longer duration\n",
                    faults->texts[i]);
    }
}

int run_faults_end(struct run_faults *faults)
{
    bool went = faults->state == RUN_FAULTS_RUNNING;
    int status = 0;

    if (faults->child <= 0)
        return 0;
    if (faults->loop)
        loop_remove(faults->loop, &faults->output);
    faults->loop = NULL;
    close(faults->input);
    fcntl(faults->output.fd, F_SETFL, 0);
    while (take_output(faults))
        ;
    close(faults->output.fd);
    while (waitpid(faults->child, &status, 0) < 0 && errno == EINTR)
        ;
    faults->child = 0;
    faults->state = RUN_FAULTS_ENDED;
    if (went && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        tell_unbegun(faults);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
