/* SPDX-License-Identifier: Apache-2.0 */
/* KIND,key=value...: one table of keys is parser and help. */
#include "loadgen/faults/fault_spec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"

#define MAX_TIMES    1000000U
#define MAX_BYTES    (1ULL << 40)
#define LEAST_QUOTA  0.001
#define MOST_QUOTA   1024.0
#define NETNS_FOLDER "/run/netns/"

static const char *const kind_names[FAULT_KINDS] = {
    [FAULT_CPU] = "cpu",   [FAULT_MEMORY] = "memory",   [FAULT_PAUSE] = "pause",
    [FAULT_KILL] = "kill", [FAULT_NETWORK] = "network",
};

const char *fault_kind_name(enum fault_kind kind)
{
    return kind_names[kind];
}

/* ---------------------------------------------------------------- setters: true when it is fine */

static bool printable(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

static bool copy_name(char *to, const char *prefix, const char *value)
{
    int length = snprintf(to, FAULT_NAME_BYTES, "%s%s", prefix, value);

    return value[0] && printable(value) && length > 0 && length < FAULT_NAME_BYTES;
}

static bool set_at(struct fault_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->at_ns) == 0;
}

static bool set_for(struct fault_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->for_ns) == 0 &&
           (spec->kind == FAULT_KILL || spec->for_ns >= FAULT_LEAST_FOR_NS);
}

static bool set_every(struct fault_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->every_ns) == 0 && spec->every_ns > 0;
}

static bool set_times(struct fault_spec *spec, const char *value)
{
    return units_parse_count(value, 1, MAX_TIMES, &spec->times) == 0;
}

static bool set_pid(struct fault_spec *spec, const char *value)
{
    uint64_t pid;

    if (units_parse_count(value, 1, INT32_MAX, &pid) != 0)
        return false;
    spec->pid = (pid_t)pid;
    return true;
}

static bool set_children(struct fault_spec *spec, const char *value)
{
    spec->children = strcmp(value, "yes") == 0;
    return spec->children || strcmp(value, "no") == 0;
}

/* "10%" or "1%" and the like, as a part of 1. */
static bool percentage(const char *value, double *out)
{
    char *end;
    double number;

    if (value[0] < '0' || value[0] > '9' || strspn(value, "0123456789.") + 1 != strlen(value))
        return false;
    number = strtod(value, &end);
    *out = number / 100;
    return strcmp(end, "%") == 0;
}

static bool set_quota(struct fault_spec *spec, const char *value)
{
    return percentage(value, &spec->quota) && spec->quota >= LEAST_QUOTA &&
           spec->quota <= MOST_QUOTA;
}

static bool set_means(struct fault_spec *spec, const char *value)
{
    static const char *const names[] = {"auto", "cgroup", "duty"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            spec->means = (enum fault_means)i;
            return true;
        }
    }
    return false;
}

static bool set_signal(struct fault_spec *spec, const char *value)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"INT", SIGINT},
                 {"QUIT", SIGQUIT}, {"ABRT", SIGABRT}, {"HUP", SIGHUP},
                 {"SEGV", SIGSEGV}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i].name) == 0) {
            spec->signal = names[i].number;
            return true;
        }
    }
    return false;
}

static bool set_restart(struct fault_spec *spec, const char *value)
{
    if (!value[0] || !printable(value) || strlen(value) >= 2048)
        return false;
    free(spec->restart);
    spec->restart = memory_string(value);
    return true;
}

static bool set_threads(struct fault_spec *spec, const char *value)
{
    uint64_t count;

    if (units_parse_count(value, 1, FAULT_MAX_THREADS, &count) != 0)
        return false;
    spec->threads = (unsigned)count;
    return true;
}

static bool set_bytes(struct fault_spec *spec, const char *value)
{
    return units_parse_bytes(value, &spec->bytes) == 0 && spec->bytes >= (1U << 20) &&
           spec->bytes <= MAX_BYTES;
}

/* "0-1+3": ranges with a + between, for a comma ends the value. */
static bool set_cpus(struct fault_spec *spec, const char *value)
{
    CPU_ZERO(&spec->cpus);
    spec->has_cpus = true;
    while (*value) {
        char *end;

        if (*value < '0' || *value > '9')
            return false;
        unsigned long first = strtoul(value, &end, 10);
        unsigned long last = first;

        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last >= CPU_SETSIZE || (*end && (*end != '+' || !end[1])))
            return false;
        for (; first <= last; first++)
            CPU_SET(first, &spec->cpus);
        value = *end ? end + 1 : end;
    }
    return CPU_COUNT(&spec->cpus) > 0;
}

static bool set_namespace(struct fault_spec *spec, const char *value)
{
    if (strcmp(value, ".") == 0 || strcmp(value, "..") == 0)
        return false;
    return copy_name(spec->network, strchr(value, '/') ? "" : NETNS_FOLDER, value);
}

static bool set_device(struct fault_spec *spec, const char *value)
{
    return value[0] != '-' && !strpbrk(value, " /") && copy_name(spec->device, "", value);
}

static bool set_delay(struct fault_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->delay_ns) == 0;
}

static bool set_jitter(struct fault_spec *spec, const char *value)
{
    return units_parse_duration_ns(value, &spec->jitter_ns) == 0;
}

static bool set_loss(struct fault_spec *spec, const char *value)
{
    return percentage(value, &spec->loss) && spec->loss <= 1;
}

/* ---------------------------------------------------------------- the table */

#define OF(kind)  (1U << (kind))
#define PROCESS   (OF(FAULT_CPU) | OF(FAULT_PAUSE) | OF(FAULT_KILL))
#define EVERY_ONE (OF(FAULT_KINDS) - 1)

static const struct key {
    const char *name;
    unsigned kinds;
    bool (*set)(struct fault_spec *spec, const char *value);
    const char *expected;
    const char *help;
} keys[] = {
    {"at", EVERY_ONE, set_at, "a time, as 2s", "first time, from the start (default 0)"},
    {"for", EVERY_ONE, set_for, "a time of at least 1ms, as 300ms",
     "length of each time (default 500ms); of kill: from the signal to the restart (default 0)"},
    {"every", EVERY_ONE, set_every, "a time above 0, as 2s", "again, from begin to begin"},
    {"times", EVERY_ONE, set_times, "a number from 1 on",
     "how often (default: once, or with every until the limit)"},
    {"pid", PROCESS, set_pid, "the number of a process", "the process; needed"},
    {"children", PROCESS, set_children, "yes or no", "its descendants too (default no)"},
    {"quota", OF(FAULT_CPU), set_quota, "per cent of one processor from 0.1%, as 10%",
     "what is left of one processor (default 10%)"},
    {"means", OF(FAULT_CPU), set_means, "auto, cgroup or duty",
     "a control group's quota, or stop and continue (default auto)"},
    {"signal", OF(FAULT_KILL), set_signal, "KILL, TERM, INT, QUIT, ABRT, HUP, SEGV, USR1 or USR2",
     "what is sent (default KILL)"},
    {"restart", OF(FAULT_KILL), set_restart, "a command of the shell, in one line",
     "run when the process has ended; it becomes the target"},
    {"threads", OF(FAULT_MEMORY), set_threads, "a number from 1 to 256",
     "threads that stream (default 2)"},
    {"bytes", OF(FAULT_MEMORY), set_bytes, "a size from 1MiB on",
     "memory that each thread streams through (default 256MiB)"},
    {"cpus", OF(FAULT_MEMORY), set_cpus, "numbers and ranges with + between, as 0-1+3",
     "processors of the threads (default: any)"},
    {"namespace", OF(FAULT_NETWORK), set_namespace, "a name of ip-netns(8), or a path with a slash",
     "the network namespace; needed"},
    {"device", OF(FAULT_NETWORK), set_device, "a network device", "default lo"},
    {"delay", OF(FAULT_NETWORK), set_delay, "a time, as 10ms", "packets leave later"},
    {"jitter", OF(FAULT_NETWORK), set_jitter, "a time, as 2ms", "deviation of the delay"},
    {"loss", OF(FAULT_NETWORK), set_loss, "per cent up to 100%, as 1%", "packets that are lost"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int set_key(struct fault_spec *spec, char *word, char error[FAULT_ERROR_BYTES])
{
    char *value = strchr(word, '=');

    if (!value) {
        snprintf(error, FAULT_ERROR_BYTES, "'%.80s': expected key=value", word);
        return -EINVAL;
    }
    *value++ = '\0';
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, word) != 0 || !(keys[i].kinds & OF(spec->kind)))
            continue;
        if (keys[i].set(spec, value))
            return 0;
        snprintf(error, FAULT_ERROR_BYTES, "%s=%.80s: expected %s", word, value, keys[i].expected);
        return -EINVAL;
    }
    snprintf(error, FAULT_ERROR_BYTES, "%s has no key '%.80s', see spillload fault --help",
             kind_names[spec->kind], word);
    return -EINVAL;
}

/* What the keys mean together. */
static int check(struct fault_spec *spec, char error[FAULT_ERROR_BYTES])
{
    const char *wrong = NULL;

    if ((OF(spec->kind) & PROCESS) && spec->pid == 0)
        wrong = "pid= is needed: the process that it is done to";
    else if (spec->every_ns && spec->every_ns <= spec->for_ns)
        wrong = "every= must be longer than for=";
    else if (spec->times > 1 && !spec->every_ns)
        wrong = "times= needs every=";
    else if (spec->kind == FAULT_KILL && spec->every_ns && !spec->restart)
        wrong = "every= needs restart=: a process ends only once";
    else if (spec->kind == FAULT_NETWORK && !spec->network[0])
        wrong = "namespace= is needed: the network namespace that it is done in";
    else if (spec->kind == FAULT_NETWORK && spec->delay_ns == 0 && spec->loss <= 0)
        wrong = "delay= or loss= is needed";
    else if (spec->jitter_ns > spec->delay_ns)
        wrong = "jitter= must not be longer than delay=";
    else if (spec->kind == FAULT_CPU && spec->means == FAULT_MEANS_DUTY && spec->quota >= 1)
        wrong = "means=duty needs a quota= below 100%";
    if (wrong)
        snprintf(error, FAULT_ERROR_BYTES, "%s", wrong);
    else if (!spec->every_ns)
        spec->times = 1;
    return wrong ? -EINVAL : 0;
}

/* Cuts the next word off at a comma; "\," is a comma within it. NULL at the end. */
static char *next_word(char **rest)
{
    char *word = *rest;
    char *to = word;
    char *from = word;

    if (!word)
        return NULL;
    while (*from && *from != ',') {
        if (from[0] == '\\' && from[1] == ',')
            from++;
        *to++ = *from++;
    }
    *rest = *from ? from + 1 : NULL;
    *to = '\0';
    return word;
}

static int parse_words(char *words, struct fault_spec *spec, char error[FAULT_ERROR_BYTES])
{
    char *kind = next_word(&words);
    char *word;

    while (spec->kind < FAULT_KINDS && strcmp(kind_names[spec->kind], kind) != 0)
        spec->kind++;
    if (spec->kind == FAULT_KINDS) {
        snprintf(error, FAULT_ERROR_BYTES,
                 "'%.80s' is no kind of fault: expected cpu, memory, pause, kill or network", kind);
        return -EINVAL;
    }
    if (spec->kind == FAULT_KILL)
        spec->for_ns = 0;
    while ((word = next_word(&words)) != NULL) {
        int status = set_key(spec, word, error);

        if (status)
            return status;
    }
    return check(spec, error);
}

int fault_spec_parse(const char *text, struct fault_spec *out, char error[FAULT_ERROR_BYTES])
{
    char *words = memory_string(text);

    *out = (struct fault_spec){
        .for_ns = 500000000,
        .quota = 0.1,
        .signal = SIGKILL,
        .threads = 2,
        .bytes = 256ULL << 20,
        .device = "lo",
    };
    int status = parse_words(words, out, error);

    free(words);
    if (status)
        fault_spec_fini(out);
    return status;
}

void fault_spec_fini(struct fault_spec *spec)
{
    free(spec->restart);
    spec->restart = NULL;
}

void fault_spec_help(FILE *out)
{
    for (size_t i = 0; i < KEYS; i++) {
        char kinds[80] = "";

        for (int k = 0; k < FAULT_KINDS && keys[i].kinds != EVERY_ONE; k++) {
            if (keys[i].kinds & OF(k)) {
                size_t length = strlen(kinds);

                snprintf(kinds + length, sizeof(kinds) - length, "%s%s", length ? ", " : "",
                         kind_names[k]);
            }
        }
        fprintf(out, "  %-10s %s%s%s\n", keys[i].name, kinds, kinds[0] ? ": " : "", keys[i].help);
    }
}
