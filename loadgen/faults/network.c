/* SPDX-License-Identifier: Apache-2.0 */
/* netem, by a tc that runs within the namespace. */
#include "loadgen/faults/network.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLE       "5b1d:"
#define OUTPUT_BYTES 4096
#define MAX_WORDS    24
#define STATUS_ENTER 126 /* of the child: it could not enter the namespace */
#define OWN_FOLDERS  ":/usr/local/sbin:/usr/sbin:/sbin"

/* What a run of tc said. */
struct answer {
    int status; /* as the shell counts */
    char text[OUTPUT_BYTES];
};

static int find_tc(char out[PATH_MAX])
{
    const char *path = getenv("PATH");
    char folders[PATH_MAX];
    char *rest = folders;
    char *folder;

    snprintf(folders, sizeof(folders), "%s%s", path ? path : "", OWN_FOLDERS);
    while ((folder = strsep(&rest, ":")) != NULL) {
        if (!folder[0] || snprintf(out, PATH_MAX, "%s/tc", folder) >= PATH_MAX)
            continue;
        if (access(out, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

/* In the child: the namespace behind the descriptor, or a new one; then tc. */
static _Noreturn void become_tc(int network, int output, const char *tc, char *const words[])
{
    static const char enter[] = "the network namespace can't be entered: it takes root "
                                "(CAP_SYS_ADMIN)\n";
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if ((network >= 0 ? setns(network, CLONE_NEWNET) : unshare(CLONE_NEWNET)) != 0) {
        (void)!write(output, enter, sizeof(enter) - 1);
        _exit(STATUS_ENTER);
    }
    execv(tc, words);
    _exit(127);
}

static void read_answer(int fd, struct answer *out)
{
    size_t length = 0;

    for (;;) {
        char beyond[256];
        bool full = length + 1 >= sizeof(out->text);
        ssize_t got = full ? read(fd, beyond, sizeof(beyond))
                           : read(fd, out->text + length, sizeof(out->text) - 1 - length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (!full)
            length += (size_t)got;
    }
    out->text[length] = '\0';
}

/* Runs tc in the namespace at a path, or in a new one for NULL. 0 when it ran at all. */
static int run_tc(const char *network, char *const words[], struct answer *out)
{
    char tc[PATH_MAX];
    int ends[2];
    int status = 0;
    int namespace = -1;

    *out = (struct answer){.status = -1};
    if (find_tc(tc) != 0) {
        snprintf(out->text, sizeof(out->text), "tc is not installed (package iproute2)\n");
        return -ENOENT;
    }
    if (network && (namespace = open(network, O_RDONLY | O_CLOEXEC)) < 0) {
        snprintf(out->text, sizeof(out->text), "%s: %s\n", network, strerror(errno));
        return -errno;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        int error = -errno;

        if (namespace >= 0)
            close(namespace);
        return error;
    }
    pid_t child = fork();

    if (child == 0)
        become_tc(namespace, ends[1], tc, words);
    close(ends[1]);
    if (child > 0) {
        read_answer(ends[0], out);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        out->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    close(ends[0]);
    if (namespace >= 0)
        close(namespace);
    return child > 0 ? 0 : -EAGAIN;
}

static int complain(const char *network, const char *device, const char *what,
                    const struct answer *answer)
{
    fprintf(stderr, "spillload fault: network %s, device %s: %s: %s%s", network, device, what,
            answer->text[0] ? answer->text : "no reason told",
            answer->text[0] && answer->text[strlen(answer->text) - 1] == '\n' ? "" : "\n");
    return -EIO;
}

/* "qdisc KIND HANDLE root ...": the handle of the root; an empty one when there is no such line. */
static int root_handle(const char *network, const char *device, char handle[32],
                       struct answer *answer)
{
    char *words[] = {"tc", "qdisc", "show", "dev", (char *)device, NULL};
    int error = run_tc(network, words, answer);
    char copy[OUTPUT_BYTES];
    char *rest = copy;
    char *line;

    if (error)
        return error;
    if (answer->status != 0)
        return -ENODEV;
    handle[0] = '\0';
    snprintf(copy, sizeof(copy), "%s", answer->text);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strstr(line, " root") && sscanf(line, "qdisc %*s %31s", handle) == 1)
            return 0;
    }
    return 0;
}

/* ---------------------------------------------------------------- before the load */

static int check_kernel(const struct fault_spec *spec)
{
    char *words[] = {"tc", "qdisc", "add", "dev", "lo", "root", "netem", NULL};
    struct answer answer;

    if (run_tc(NULL, words, &answer) == 0 && answer.status == 0)
        return 0;
    fprintf(
        stderr,
        "spillload fault: network %s, device %s: netem can't be used on this machine: %s"
        "%sThe kernel needs sch_netem (CONFIG_NET_SCH_NETEM; modprobe sch_netem), and tc root's "
        "rights.\n",
        spec->network, spec->device, answer.text,
        answer.text[0] && answer.text[strlen(answer.text) - 1] == '\n' ? "" : "\n");
    return -ENOTSUP;
}

static int check_namespace(const struct fault_spec *spec, bool force)
{
    struct stat wanted;
    struct stat own;

    if (stat(spec->network, &wanted) != 0) {
        fprintf(stderr, "spillload fault: network %s: %s: make one with ip netns add\n",
                spec->network, strerror(errno));
        return -ENOENT;
    }
    if (!force && stat("/proc/self/ns/net", &own) == 0 && own.st_ino == wanted.st_ino) {
        fprintf(stderr,
                "spillload fault: network %s is the one that spillload itself, and maybe the whole "
                "host, uses; as root, --force allows it\n",
                spec->network);
        return -EPERM;
    }
    return 0;
}

int network_check(const struct fault_spec *spec, bool force)
{
    char handle[32];
    struct answer answer;
    int error = check_namespace(spec, force);

    if (!error)
        error = check_kernel(spec);
    if (error)
        return error;
    if (root_handle(spec->network, spec->device, handle, &answer) != 0)
        return complain(spec->network, spec->device, "tc qdisc show", &answer);
    /* The handle 0: is what the kernel gives what nobody configured. */
    if (handle[0] && strcmp(handle, "0:") != 0) {
        fprintf(stderr,
                "spillload fault: network %s, device %s: it has a queueing discipline already "
                "(%s), which is not ours to replace; remove it with tc qdisc del, or run "
                "spillload fault --undo if an earlier run left it\n",
                spec->network, spec->device, handle);
        return -EBUSY;
    }
    return 0;
}

/* ---------------------------------------------------------------- on and off */

int network_add(const struct fault_spec *spec)
{
    char delay[32];
    char jitter[32];
    char loss[32];
    char *words[MAX_WORDS] = {"tc",   "qdisc",  "add",  "dev",  (char *)spec->device,
                              "root", "handle", HANDLE, "netem"};
    size_t count = 9;
    struct answer answer;

    snprintf(delay, sizeof(delay), "%lluus", (unsigned long long)(spec->delay_ns / 1000));
    snprintf(jitter, sizeof(jitter), "%lluus", (unsigned long long)(spec->jitter_ns / 1000));
    snprintf(loss, sizeof(loss), "%.4f%%", spec->loss * 100);
    if (spec->delay_ns) {
        words[count++] = "delay";
        words[count++] = delay;
        if (spec->jitter_ns)
            words[count++] = jitter;
    }
    if (spec->loss > 0) {
        words[count++] = "loss";
        words[count++] = loss;
    }
    words[count] = NULL;
    if (run_tc(spec->network, words, &answer) != 0 || answer.status != 0)
        return complain(spec->network, spec->device, "tc qdisc add", &answer);
    return 0;
}

int network_remove(const char *network, const char *device)
{
    char *words[] = {"tc", "qdisc", "del", "dev", (char *)device, "root", "handle", HANDLE, NULL};
    char handle[32];
    struct answer answer;
    int error = root_handle(network, device, handle, &answer);

    if (error == -ENODEV || (error == -ENOENT && access(network, F_OK) != 0))
        return answer.status == STATUS_ENTER ? complain(network, device, "tc", &answer) : 0;
    if (error)
        return complain(network, device, "tc qdisc show", &answer);
    if (strcmp(handle, HANDLE) != 0)
        return 0;
    if (run_tc(network, words, &answer) != 0 || answer.status != 0)
        return complain(network, device, "tc qdisc del", &answer);
    return 0;
}
