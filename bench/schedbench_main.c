/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedbench: what a scheduling decision costs. One thread; no sockets, no protocol: the library
 * alone, in the loads of sched_turns.h. Each combination of algorithm, mode and number of flows is
 * built, warmed up and timed in batches; one line of JSON each goes to stdout:
 *
 *   algorithm, mode, flows, queued, depth, weights, costs, seed   what ran
 *   ns              per turn (enqueue + dispatch + complete): the median of the batches
 *   low_ns          the tenth part of the batches was faster: the same on a quieter machine
 *   mean_ns         all batches' time by all turns
 *   cpu_ns          the same by the thread's processor time
 *   turns           how many were timed
 *   flow_bytes      sizeof(struct sched_flow)
 *   flow_heap_bytes what the scheduler allocated on top, by the number of flows; null where the
 *                   flows come and go
 *   item_bytes      sizeof(struct sched_item)
 */
#include "bench/sched_turns.h"
#include "loadgen/base/units.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BARE_LIST      (-1)
#define LIST_LIMIT     32
#define MODES          3
#define BATCH_LIMIT    1000000
#define FLOWS_LIMIT    10000000
#define WARM_UP_TURNS  200000
#define DEFAULT_TURNS  2000000
#define DEFAULT_QUEUED 4
#define DEFAULT_DEPTH  16
#define DEFAULT_SEED   1

/*
 * A batch is far shorter than what the kernel gives a thread at a time, so that the median is of
 * batches nobody interrupted.
 */
#define BATCH_TURNS 512

static const char usage[] =
    "usage: schedbench [options]\n"
    "  --algorithms LIST  comma-separated names, \"list\" for a bare linked list (all)\n"
    "  --modes LIST       steady, churn, life (steady)\n"
    "  --flows LIST       numbers of flows (1,100,10000)\n"
    "  --queued N         requests waiting per flow in steady mode (4)\n"
    "  --depth N          outstanding requests (16)\n"
    "  --weights KIND     equal, or random: 1 to 100 (equal)\n"
    "  --costs KIND       equal, or random: 1 to 16 (equal)\n"
    "  --pinned           the flows are declared ones, never retired\n"
    "  --turns N          turns timed per combination (2000000)\n"
    "  --seed N           of what is random (1)\n"
    "  --core N           run on this processor (the one it starts on)\n";

static const char *const mode_names[MODES] = {
    [TURNS_STEADY] = "steady", [TURNS_CHURN] = "churn", [TURNS_LIFE] = "life"};

struct choice {
    int values[LIST_LIMIT];
    unsigned count;
};

struct options {
    struct choice algorithms; /* enum sched_algorithm or BARE_LIST */
    struct choice modes;
    struct choice flows;
    struct turns_plan plan;
    uint64_t turns;
    int core;
};

struct timing {
    uint64_t turns;
    double median_ns;
    double low_ns;
    double mean_ns;
    double cpu_ns;
};

static _Noreturn void refuse(const char *what, const char *text)
{
    fprintf(stderr, "schedbench: %s: %s\n%s", what, text, usage);
    exit(2);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- options -------------------------------------------------------------------------------- */

static uint64_t read_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    uint64_t number = 0;

    if (units_parse_count(text, least, most, &number) != 0)
        refuse(option, text);
    return number;
}

static int read_algorithm(const char *text)
{
    if (strcmp(text, "list") == 0)
        return BARE_LIST;
    int algorithm = sched_algorithm_from_name(text);
    if (algorithm < 0)
        refuse("unknown algorithm", text);
    return algorithm;
}

static int read_mode(const char *text)
{
    for (int mode = 0; mode < MODES; mode++)
        if (strcmp(text, mode_names[mode]) == 0)
            return mode;
    refuse("unknown mode", text);
}

static int read_flows(const char *text)
{
    return (int)read_number("--flows", text, 1, FLOWS_LIMIT);
}

static bool read_random(const char *option, const char *text)
{
    if (strcmp(text, "random") != 0 && strcmp(text, "equal") != 0)
        refuse(option, text);
    return strcmp(text, "random") == 0;
}

/* Splits `text` in place. */
static void read_list(char *text, int (*read)(const char *), struct choice *choice)
{
    char *rest = NULL;

    choice->count = 0;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (choice->count == LIST_LIMIT)
            refuse("too many", word);
        choice->values[choice->count++] = read(word);
    }
    if (choice->count == 0)
        refuse("an empty list", text);
}

static void choose_defaults(struct options *options)
{
    static const int flows[] = {1, 100, 10000};

    *options = (struct options){
        .modes = {.values = {TURNS_STEADY}, .count = 1},
        .plan = {.queued = DEFAULT_QUEUED, .depth = DEFAULT_DEPTH, .seed = DEFAULT_SEED},
        .turns = DEFAULT_TURNS,
        .core = -1,
    };
    memcpy(options->flows.values, flows, sizeof(flows));
    options->flows.count = sizeof(flows) / sizeof(flows[0]);
    options->algorithms.values[options->algorithms.count++] = BARE_LIST;
    for (int i = 0; i < SCHED_ALGORITHMS; i++)
        if (sched_algorithm_name((enum sched_algorithm)i) != NULL)
            options->algorithms.values[options->algorithms.count++] = i;
}

static void take_option(struct options *options, int option, char *value)
{
    struct turns_plan *plan = &options->plan;

    switch (option) {
    case 'a':
        read_list(value, read_algorithm, &options->algorithms);
        break;
    case 'm':
        read_list(value, read_mode, &options->modes);
        break;
    case 'f':
        read_list(value, read_flows, &options->flows);
        break;
    case 'q':
        plan->queued = read_number("--queued", value, 1, 1000);
        break;
    case 'd':
        plan->depth = read_number("--depth", value, 1, 1000000);
        break;
    case 'w':
        plan->random_weights = read_random("--weights", value);
        break;
    case 'c':
        plan->random_costs = read_random("--costs", value);
        break;
    case 'p':
        plan->pinned = true;
        break;
    case 't':
        options->turns = read_number("--turns", value, 1, (uint64_t)BATCH_TURNS * BATCH_LIMIT);
        break;
    case 's':
        plan->seed = read_number("--seed", value, 0, UINT64_MAX);
        break;
    case 'o':
        options->core = (int)read_number("--core", value, 0, CPU_SETSIZE - 1);
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

static void read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"algorithms", required_argument, NULL, 'a'},
                                          {"modes", required_argument, NULL, 'm'},
                                          {"flows", required_argument, NULL, 'f'},
                                          {"queued", required_argument, NULL, 'q'},
                                          {"depth", required_argument, NULL, 'd'},
                                          {"weights", required_argument, NULL, 'w'},
                                          {"costs", required_argument, NULL, 'c'},
                                          {"pinned", no_argument, NULL, 'p'},
                                          {"turns", required_argument, NULL, 't'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"core", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int option;

    choose_defaults(options);
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        take_option(options, option, optarg);
    if (optind != argc)
        refuse("unexpected", argv[optind]);
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* A thread that may not choose its processor measures all the same, with more noise. */
static void pin(int core)
{
    cpu_set_t set;

    if (core < 0)
        core = sched_getcpu();
    if (core < 0 || core >= CPU_SETSIZE)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Each flow is served once before the timing begins, or as many as the timing itself will serve. */
static uint64_t warm_up_turns(const struct options *options, uint64_t flows)
{
    const uint64_t most = options->turns < WARM_UP_TURNS ? options->turns : WARM_UP_TURNS;

    return flows > most ? flows : most;
}

/* -EIO when the scheduler ran dry. */
static int measure(struct turns *turns, const struct options *options, struct timing *timing)
{
    const uint64_t batches = (options->turns + BATCH_TURNS - 1) / BATCH_TURNS;
    double *batch_ns = calloc(batches, sizeof(*batch_ns));
    uint64_t count = 0;
    int error = -EIO;

    if (batch_ns == NULL)
        return -ENOMEM;
    if (turns_run(turns, warm_up_turns(options, turns->plan.flows)) == 0)
        goto out;

    const uint64_t cpu_began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t last_ns = began_ns;
    *timing = (struct timing){0};
    while (count < batches && timing->turns < options->turns) {
        const uint64_t ran = turns_run(turns, BATCH_TURNS);
        if (ran == 0)
            goto out;
        const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        batch_ns[count++] = (double)(now_ns - last_ns) / (double)ran;
        timing->turns += ran;
        last_ns = now_ns;
    }
    const uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began_ns;
    timing->mean_ns = (double)(last_ns - began_ns) / (double)timing->turns;
    timing->cpu_ns = (double)cpu_ns / (double)timing->turns;
    qsort(batch_ns, count, sizeof(*batch_ns), compare_doubles);
    timing->median_ns = batch_ns[count / 2];
    timing->low_ns = batch_ns[count / 10];
    error = 0;
out:
    free(batch_ns);
    return error;
}

static void print_result(const struct turns *turns, const char *name, const struct timing *timing)
{
    const struct turns_plan *plan = &turns->plan;

    printf("{\"algorithm\": \"%s\", \"mode\": \"%s\", \"flows\": %" PRIu64 ", \"queued\": %" PRIu64
           ", \"depth\": %" PRIu64 ", \"weights\": \"%s\", \"costs\": \"%s\", \"pinned\": %s"
           ", \"seed\": %" PRIu64,
           name, mode_names[plan->mode], plan->flows, plan->queued, plan->depth,
           plan->random_weights ? "random" : "equal", plan->random_costs ? "random" : "equal",
           plan->pinned ? "true" : "false", plan->seed);
    printf(", \"ns\": %.2f, \"low_ns\": %.2f, \"mean_ns\": %.2f, \"cpu_ns\": %.2f"
           ", \"turns\": %" PRIu64,
           timing->median_ns, timing->low_ns, timing->mean_ns, timing->cpu_ns, timing->turns);
    printf(", \"flow_bytes\": %zu, \"item_bytes\": %zu, \"flow_heap_bytes\": ",
           sizeof(struct sched_flow), sizeof(struct sched_item));
    if (plan->mode == TURNS_LIFE)
        printf("null}\n");
    else
        printf("%.1f}\n", (double)turns->heap_bytes / (double)plan->flows);
    (void)fflush(stdout);
}

/* One combination. Returns false after an error, which is on stderr then. */
static bool run_one(const struct options *options, int algorithm, enum turns_mode mode, int flows)
{
    const bool bare = algorithm == BARE_LIST;
    const char *name = bare ? "list" : sched_algorithm_name((enum sched_algorithm)algorithm);
    struct turns_plan plan = options->plan;
    struct turns turns;
    struct timing timing;

    plan.bare_list = bare;
    plan.algorithm = bare ? SCHED_ALGORITHM_FIFO : (enum sched_algorithm)algorithm;
    plan.mode = mode;
    plan.flows = (uint64_t)flows;
    int error = turns_init(&turns, &plan);
    if (error == 0)
        error = measure(&turns, options, &timing);
    if (error == 0)
        print_result(&turns, name, &timing);
    else if (error != -ENOTSUP)
        fprintf(stderr, "schedbench: %s, %s, %d flows: %s\n", name, mode_names[mode], flows,
                error == -EIO ? "the scheduler held back what was due" : strerror(-error));
    turns_fini(&turns);
    return error == 0 || error == -ENOTSUP;
}

int main(int argc, char **argv)
{
    struct options options;
    bool good = true;

    read_options(argc, argv, &options);
    pin(options.core);
    for (unsigned f = 0; f < options.flows.count; f++)
        for (unsigned m = 0; m < options.modes.count; m++)
            for (unsigned a = 0; a < options.algorithms.count; a++)
                good = run_one(&options, options.algorithms.values[a],
                               (enum turns_mode)options.modes.values[m], options.flows.values[f]) &&
                       good;
    return good ? 0 : 1;
}
