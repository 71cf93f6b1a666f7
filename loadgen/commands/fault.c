/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillload fault: interference and faults for one's own services on this host, bounded in time
 * and undone at the end, whatever the end is.
 *
 *   settle what dead runs left -> check, prepare -> "ready" -> start (at once, or a line on stdin)
 *   -> faults by the clock -> all over, the limit, a signal, the end of stdin, the keeper's death
 *   -> undo -> "done"
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/base/memory.h"
#include "loadgen/base/units.h"
#include "loadgen/commands/commands.h"
#include "loadgen/faults/fault.h"
#include "loadgen/faults/keeper.h"
#include "loadgen/net/signals.h"

#define MAX_FAULTS   32
#define NS_PER_S     1000000000ULL
#define KEEPER_LATER (2 * NS_PER_S) /* than our own limit */
#define MOST_LIMIT   (24 * 3600 * NS_PER_S)

struct options {
    struct fault_spec specs[MAX_FAULTS];
    size_t count;
    uint64_t limit_ns;
    bool json;
    bool by_stdin;
    bool force;
    bool check;
    bool undo;
    char folder[PATH_MAX];
};

struct course {
    const struct options *options;
    struct loop loop;
    struct signals signals;
    struct journal journal;
    struct keeper keeper;
    struct events events;
    struct fault_context context;
    struct fault *faults;
    size_t faults_count;
    struct loop_timer limit_timer;
    struct loop_timer child_timer;
    struct loop_io keeper_io;
    struct loop_io stdin_io;
    bool started;
    bool keeper_lost;
    int status;
};

/* ---------------------------------------------------------------- --undo */

/* Settles the journals that nobody holds. Returns how many could not be; -1 after a message. */
static int settle_left(const char *folder, bool talk)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int failed = 0;
    int held = 0;
    int undone = 0;

    if (!entries) {
        if (errno == ENOENT) {
            if (talk)
                printf("nothing was left\n");
            return 0;
        }
        fprintf(stderr, "spillload fault: journal folder %s: %s\n", folder, strerror(errno));
        return -1;
    }
    while ((entry = readdir(entries)) != NULL) {
        struct journal journal;
        char path[PATH_MAX];
        int done;

        if (strncmp(entry->d_name, "journal-", 8) != 0 ||
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path))
            continue;
        int error = journal_claim(path, &journal);

        if (error) {
            held += error == -EWOULDBLOCK;
            continue;
        }
        int owed = journal_settle(&journal, &done);

        journal_close(&journal, owed);
        undone += done;
        failed += owed != 0;
    }
    closedir(entries);
    if (talk)
        printf("undone: %d; journals of faults at work, left alone: %d; not undone: %d\n", undone,
               held, failed);
    else if (undone)
        fprintf(stderr, "spillload fault: undone what an earlier run had left: %d\n", undone);
    return failed;
}

/* ---------------------------------------------------------------- the course */

static void start(struct course *course)
{
    uint64_t now_ns = loop_clock_ns();

    if (course->started)
        return;
    course->started = true;
    course->events.start_ns = now_ns;
    for (size_t i = 0; i < course->faults_count; i++)
        fault_start(&course->faults[i], now_ns);
}

static void all_over(struct fault_context *context)
{
    struct course *course = (void *)((char *)context - offsetof(struct course, context));

    loop_stop(&course->loop);
}

static void limit_reached(struct loop_timer *timer)
{
    struct course *course = (void *)((char *)timer - offsetof(struct course, limit_timer));

    fprintf(stderr, "spillload fault: the limit of %g s ends everything (--limit)\n",
            (double)course->options->limit_ns / 1e9);
    loop_stop(&course->loop);
}

static void interrupted(struct signals *signals)
{
    loop_stop(signals->loop);
}

static void keeper_ended(struct loop_io *io, uint32_t events)
{
    struct course *course = (void *)((char *)io - offsetof(struct course, keeper_io));

    (void)events;
    fprintf(stderr, "spillload fault: the keeper was ended from outside; everything is undone now, "
                    "for nobody would do it later\n");
    course->keeper_lost = true;
    course->status = 1;
    loop_stop(&course->loop);
}

/* A line starts, the end ends. */
static void stdin_ready(struct loop_io *io, uint32_t events)
{
    struct course *course = (void *)((char *)io - offsetof(struct course, stdin_io));
    char text[256];
    ssize_t got;

    (void)events;
    while ((got = read(io->fd, text, sizeof(text))) > 0) {
        if (memchr(text, '\n', (size_t)got))
            start(course);
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        loop_stop(&course->loop);
}

/* Restarted services are our children until we end; what they leave is taken away. */
static void reap(struct loop_timer *timer)
{
    struct course *course = (void *)((char *)timer - offsetof(struct course, child_timer));

    for (size_t i = 0; i < course->faults_count; i++) {
        struct fault *fault = &course->faults[i];

        if (fault->spec.kind == FAULT_KILL && fault->times_done && !fault->trial)
            waitpid(fault->spec.pid, NULL, WNOHANG);
    }
    loop_timer_set(&course->loop, timer, loop_clock_ns() + NS_PER_S / 10);
}

static int open_course(struct course *course)
{
    const struct options *options = course->options;
    int error = loop_init(&course->loop);

    if (!error)
        error = signals_init(&course->signals, &course->loop, interrupted);
    course->keeper_io = (struct loop_io){.fd = course->keeper.pidfd, .ready = keeper_ended};
    if (!error)
        error = loop_add(&course->loop, &course->keeper_io);
    if (!error && options->by_stdin) {
        course->stdin_io = (struct loop_io){.fd = STDIN_FILENO, .ready = stdin_ready};
        fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
        error = loop_add(&course->loop, &course->stdin_io);
        if (error == -EPERM) {
            fprintf(stderr, "spillload fault: --hold needs a pipe, socket or terminal\n");
            return error;
        }
    }
    if (error)
        fprintf(stderr, "spillload fault: %s\n", strerror(-error));
    return error;
}

static int prepare_all(struct course *course)
{
    const struct options *options = course->options;

    course->context = (struct fault_context){.loop = &course->loop,
                                             .journal = &course->journal,
                                             .events = &course->events,
                                             .force = options->force,
                                             .over = all_over};
    course->events = (struct events){.json = options->json, .start_ns = loop_clock_ns()};
    course->faults = memory_zeroed(options->count, sizeof(*course->faults));
    course->context.faults = course->faults;
    course->context.count = options->count;
    for (size_t i = 0; i < options->count; i++) {
        course->faults_count++;
        if (fault_prepare(&course->faults[i], &course->context, i, &options->specs[i]) != 0)
            return -1;
    }
    return 0;
}

static void tell_check(const struct course *course)
{
    for (size_t i = 0; i < course->faults_count; i++) {
        const char *how = fault_how(&course->faults[i]);

        printf("%s: can be done%s%s\n", fault_kind_name(course->faults[i].spec.kind),
               how[0] ? ": " : "", how);
    }
}

static void go(struct course *course)
{
    int error;

    events_whole(&course->events, "ready");
    course->limit_timer.fire = limit_reached;
    course->child_timer.fire = reap;
    loop_timer_set(&course->loop, &course->limit_timer,
                   loop_clock_ns() + course->options->limit_ns);
    loop_timer_set(&course->loop, &course->child_timer, loop_clock_ns());
    if (!course->options->by_stdin)
        start(course);
    error = loop_run(&course->loop);
    if (error) {
        fprintf(stderr, "spillload fault: %s\n", strerror(-error));
        course->status = 1;
    }
}

/* Undoes everything; without a keeper the journal is ours to settle. */
static void close_course(struct course *course)
{
    for (size_t i = 0; i < course->faults_count; i++)
        fault_stop(&course->faults[i]);
    free(course->faults);
    if (course->context.failed)
        course->status = 1;
    if (keeper_end(&course->keeper) != 0) {
        int owed = journal_settle(&course->journal, NULL);

        journal_close(&course->journal, owed);
        course->status = 1;
    } else {
        close(course->journal.fd);
    }
    signals_fini(&course->signals);
    loop_fini(&course->loop);
}

static int do_faults(const struct options *options)
{
    struct course *course = memory_zeroed(1, sizeof(*course));
    int status;

    course->options = options;
    course->signals.io.fd = -1;
    course->loop.epoll_fd = -1;
    course->status = 1;
    if (journal_folder(options->folder) != 0) {
        free(course);
        return 1;
    }
    settle_left(options->folder, false);
    if (journal_create(options->folder, &course->journal) != 0) {
        free(course);
        return 1;
    }
    if (keeper_start(&course->keeper, &course->journal, options->limit_ns + KEEPER_LATER) == 0 &&
        open_course(course) == 0 && prepare_all(course) == 0) {
        course->status = 0;
        if (options->check)
            tell_check(course);
        else
            go(course);
    }
    close_course(course);
    status = course->status;
    if (status == 0 && !options->check)
        events_whole(&course->events, "done");
    free(course);
    return status;
}

/* ---------------------------------------------------------------- the command line */

static void usage(FILE *out)
{
    fputs("usage: spillload fault KIND[,KEY=VALUE...] ... [options]\n"
          "       spillload fault --undo\n"
          "\n"
          "Interference and faults for your own services on this host, bounded in time and undone\n"
          "at the end, even when spillload is killed. Kinds:\n"
          "\n"
          "  cpu       a process gets little processor time\n"
          "  memory    threads stream through memory beside everything else\n"
          "  pause     a process stands still\n"
          "  kill      a process ends, and is started again with restart=\n"
          "  network   packets of a network namespace are late or lost\n"
          "\n"
          "Keys (a comma in a value is written \\,):\n",
          out);
    fault_spec_help(out);
    fputs("\n"
          "  --limit=TIME     ends everything (default 10m)\n"
          "  --json-events    what happens, as one JSON object per line\n"
          "  --hold           starts at a line on standard input, ends with its end\n"
          "  --check          says whether and how it can be done, and does nothing\n"
          "  --force          as root: other users' processes, the host's own network\n"
          "  --journal=DIR    where what is owed is noted (default /run/spillload for root)\n"
          "  --undo           undoes what is left of runs that were killed with their keepers\n"
          "  --help           this text\n"
          "\n"
          "Exit status: 0 all done and undone; 1 something failed; 2 a wrong command line.\n",
          out);
}

static int wrong(const char *text, const char *why)
{
    fprintf(stderr, "spillload fault: %s: %s\nTry 'spillload fault --help'.\n", text, why);
    return 2;
}

static int read_faults(struct options *options, int count, char **texts)
{
    for (int i = 0; i < count; i++) {
        char error[FAULT_ERROR_BYTES];

        if (options->count == MAX_FAULTS)
            return wrong(texts[i], "at most 32 faults");
        if (fault_spec_parse(texts[i], &options->specs[options->count], error) != 0)
            return wrong(texts[i], error);
        options->count++;
        /* A run warns instead, at its end: its limit is none that its user wrote. */
        if (!options->by_stdin && options->specs[options->count - 1].at_ns >= options->limit_ns)
            return wrong(texts[i], "at= is not before the limit, which ends all: raise --limit");
    }
    if (options->undo && options->count)
        return wrong("--undo", "takes no faults");
    if (!options->undo && options->count == 0)
        return wrong("no fault", "expected KIND[,KEY=VALUE...], as pause,pid=4711");
    return 0;
}

static int read_command_line(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"limit", required_argument, NULL, 'l'},
        {"json-events", no_argument, NULL, 'j'},
        {"hold", no_argument, NULL, 's'},
        {"check", no_argument, NULL, 'c'},
        {"force", no_argument, NULL, 'f'},
        {"journal", required_argument, NULL, 'd'},
        {"undo", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    optind = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'l':
            if (units_parse_duration_ns(optarg, &options->limit_ns) != 0 ||
                options->limit_ns == 0 || options->limit_ns > MOST_LIMIT)
                return wrong("--limit", "expected a time up to 24h, as 10m");
            break;
        case 'd':
            if (optarg[0] != '/' || strlen(optarg) >= sizeof(options->folder))
                return wrong("--journal", "expected a folder, from the root on");
            snprintf(options->folder, sizeof(options->folder), "%s", optarg);
            break;
        case 'h':
            usage(stdout);
            exit(0);
        case '?':
            fputs("Try 'spillload fault --help'.\n", stderr);
            return 2;
        default:
            options->json |= option == 'j';
            options->by_stdin |= option == 's';
            options->check |= option == 'c';
            options->force |= option == 'f';
            options->undo |= option == 'u';
        }
    }
    if (options->force && geteuid() != 0)
        return wrong("--force", "only for root");
    return read_faults(options, argc - optind, argv + optind);
}

int command_fault(int argc, char **argv)
{
    struct options *options = memory_zeroed(1, sizeof(*options));
    int status;

    options->limit_ns = 600 * NS_PER_S;
    journal_default_folder(options->folder);
    status = read_command_line(options, argc, argv);
    if (status == 0)
        status = options->undo ? settle_left(options->folder, true) != 0 : do_faults(options);
    else
        for (size_t i = 0; i < options->count; i++)
            fault_spec_fini(&options->specs[i]);
    free(options);
    return status;
}
