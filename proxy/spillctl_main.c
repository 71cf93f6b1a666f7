/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spillctl: shows and steers a running proxy over its control socket.
 *
 * A command is looked up by its words in one table, its arguments become a path and a body of the
 * control plane's API (control/api/api.h), and the answer is printed. Exit statuses: 0 done, 1 the
 * proxy refused, 64 the command line is wrong, 69 the proxy can't be reached.
 */
#include "proxy/control/ctl/calibrate.h"
#include "proxy/control/ctl/client.h"
#include "proxy/control/ctl/table.h"
#include "proxy/control/version.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SOCKET "/run/spillway.sock"
#define TIMEOUT_S      60
#define TIMEOUT_MAX_S  86400

enum { EXIT_REFUSED = 1, EXIT_USAGE = 64, EXIT_UNREACHABLE = 69 };

struct ctl {
    const char *socket;
    unsigned timeout_s;
    bool json;
};

static void usage(FILE *out)
{
    fprintf(out,
            "usage: spillctl [-s SOCKET] [-t SECONDS] [--json] COMMAND\n"
            "  show status|listeners|pools|flows|servers|admission\n"
            "                                              what there is and what happened so far\n"
            "  metrics                                     the page for Prometheus\n"
            "  set weight POOL/FLOW N                      the flow's share\n"
            "  set depth POOL N                            requests at a pool's servers together\n"
            "  set depth POOL/SERVER N                     requests at one server\n"
            "  set algorithm POOL NAME                     fifo, sfqd, rw, mclock and others\n"
            "  set slack|capacity|ageing|at-limit POOL VALUE\n"
            "                                              what some algorithms are told\n"
            "  set admission POOL NAME                     who may join the queue: duk, none, ...\n"
            "  set admission-action POOL refuse|mark|auto  what becomes of what may not\n"
            "  set admission-limit|admission-target|admission-interval POOL VALUE\n"
            "                                              what some policies are told\n"
            "  set target|reservation|limit|burst|queue-limit|response-target POOL/FLOW VALUE\n"
            "                                              what a flow is promised: 20ms, 100/s\n"
            "  drain POOL/SERVER                           no new requests for the server\n"
            "  ready POOL/SERVER                           and again\n"
            "  reload                                      the configuration file\n"
            "  calibrate nfs HOST:PORT/EXPORT | http URL...  measures a server's operations and\n"
            "                                              prints a `cost`; calibrate --help\n"
            "Options:\n"
            "  -s, --socket SOCKET   default $SPILLWAY_SOCKET, else " DEFAULT_SOCKET "\n"
            "  -t, --timeout SECONDS to wait for an answer (default 60)\n"
            "  -j, --json            with show: the proxy's answer as it is\n"
            "  -V, --version\n"
            "  -h, --help\n"
            "What set, drain and ready change lasts until the next reload or start. See "
            "spillctl(8).\n");
}

static int misused(const char *what, const char *word)
{
    fprintf(stderr, "spillctl: %s '%s'; see spillctl --help\n", what, word);
    return EXIT_USAGE;
}

/* ------------------------------------------------------------------ asking */

static int say_unreachable(const struct ctl *ctl, int error)
{
    const char *hint = "";

    if (error == -ENOENT)
        hint = " (is the proxy running, with this admin.socket in its configuration?)";
    else if (error == -ECONNREFUSED)
        hint = " (the proxy is not running any more)";
    else if (error == -EACCES)
        hint = " (it is for the proxy's user and group)";
    fprintf(stderr, "spillctl: can't reach the proxy at %s: %s%s\n", ctl->socket, strerror(-error),
            hint);
    return EXIT_UNREACHABLE;
}

/* Prints the string under `key`, or the whole answer when there is none. */
static void say_member(const struct client_answer *answer, const char *key, const char *otherwise)
{
    json_t *object = json_loadb(answer->body, answer->length, 0, NULL);
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL)
        text = otherwise;
    if (text != NULL) {
        size_t length = strlen(text);
        fprintf(stderr, "spillctl: %s%s", text, length > 0 && text[length - 1] == '\n' ? "" : "\n");
    }
    json_decref(object);
}

/* EXIT_SUCCESS, and then the answer is the caller's; otherwise it was said what happened. */
static int ask(const struct ctl *ctl, const char *path, const char *body,
               struct client_answer *answer)
{
    int error = client_ask(ctl->socket, path, body, ctl->timeout_s, answer);

    if (error < 0)
        return say_unreachable(ctl, error);
    if (answer->status == 200)
        return EXIT_SUCCESS;
    say_member(answer, "error", answer->body);
    free(answer->body);
    return EXIT_REFUSED;
}

/* ------------------------------------------------------------------ show */

static int print_view(const struct ctl *ctl, const char *what, const struct client_answer *answer)
{
    size_t count = 0;
    const struct column *columns = table_columns(what, &count);
    json_t *view;
    int error;

    if (ctl->json) {
        fwrite(answer->body, 1, answer->length, stdout);
        return EXIT_SUCCESS;
    }
    view = json_loadb(answer->body, answer->length, 0, NULL);
    if (columns == NULL)
        error = table_print_status(stdout, view);
    else
        error = table_print(stdout, columns, count, view);
    json_decref(view);
    return error == 0 ? EXIT_SUCCESS : say_unreachable(ctl, error);
}

static int run_show(const struct ctl *ctl, char **arguments)
{
    const char *what = arguments[0];
    struct client_answer answer;
    size_t count;
    char path[64];

    if (strcmp(what, "status") != 0 && table_columns(what, &count) == NULL)
        return misused("show takes status, listeners, pools, flows, servers or admission, not",
                       what);
    /* The pools, seen from another side. */
    snprintf(path, sizeof(path), "/v1/%s", strcmp(what, "admission") == 0 ? "pools" : what);
    int status = ask(ctl, path, NULL, &answer);
    if (status != EXIT_SUCCESS)
        return status;
    status = print_view(ctl, what, &answer);
    free(answer.body);
    return status;
}

static int run_metrics(const struct ctl *ctl, char **arguments)
{
    struct client_answer answer;
    int status = ask(ctl, "/metrics", NULL, &answer);

    (void)arguments;
    if (status != EXIT_SUCCESS)
        return status;
    fwrite(answer.body, 1, answer.length, stdout);
    free(answer.body);
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------------ changes */

static int change(const struct ctl *ctl, const char *path, const char *body)
{
    struct client_answer answer;
    int status = ask(ctl, path, body, &answer);

    if (status != EXIT_SUCCESS)
        return status;
    say_member(&answer, "messages", NULL);
    free(answer.body);
    return EXIT_SUCCESS;
}

/* Posts {"key": value} to the pool, or to one of its members: kind "flows" or "servers". */
static int change_setting(const struct ctl *ctl, const char *pool, const char *kind,
                          const char *name, const char *key, json_t *value)
{
    json_t *object = json_pack("{s:o}", key, value);
    char *body = json_dumps(object, JSON_COMPACT);
    char *encoded_pool = client_encode(pool);
    char *encoded_name = client_encode(name != NULL ? name : "");
    char *path = NULL;
    int status = EXIT_REFUSED;

    if (body == NULL || encoded_pool == NULL || encoded_name == NULL ||
        asprintf(&path, name != NULL ? "/v1/pools/%s/%s/%s" : "/v1/pools/%s", encoded_pool, kind,
                 encoded_name) < 0)
        fprintf(stderr, "spillctl: '%s' can't be sent\n", pool);
    else
        status = change(ctl, path, body);
    free(path);
    free(encoded_name);
    free(encoded_pool);
    free(body);
    json_decref(object);
    return status;
}

/* "POOL/NAME" is cut at its first slash; false without one. */
static bool split(char *text, const char **name)
{
    char *slash = strchr(text, '/');

    if (slash == NULL || slash == text || slash[1] == '\0')
        return false;
    *slash = '\0';
    *name = slash + 1;
    return true;
}

/* Whole numbers of any sign that fit; the proxy knows the ranges. */
static bool parse_number(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static int run_set_weight(const struct ctl *ctl, char **arguments)
{
    const char *flow;
    int64_t number;

    if (!split(arguments[0], &flow))
        return misused("set weight takes POOL/FLOW, not", arguments[0]);
    if (!parse_number(arguments[1], &number))
        return misused("a weight is a whole number, not", arguments[1]);
    return change_setting(ctl, arguments[0], "flows", flow, "weight", json_integer(number));
}

static int run_set_depth(const struct ctl *ctl, char **arguments)
{
    const char *server = NULL;
    int64_t number;

    if (strchr(arguments[0], '/') != NULL && !split(arguments[0], &server))
        return misused("set depth takes POOL or POOL/SERVER, not", arguments[0]);
    if (!parse_number(arguments[1], &number))
        return misused("a depth is a whole number, not", arguments[1]);
    return change_setting(ctl, arguments[0], "servers", server, "depth", json_integer(number));
}

static int run_set_algorithm(const struct ctl *ctl, char **arguments)
{
    return change_setting(ctl, arguments[0], NULL, NULL, "algorithm", json_string(arguments[1]));
}

/* Options of a scheduler, of an admission and promises of a flow go as they are written; the proxy
 * reads them. */
static int run_set_option(const struct ctl *ctl, char **arguments)
{
    return change_setting(ctl, arguments[0], NULL, NULL, arguments[-1], json_string(arguments[1]));
}

static int run_set_promise(const struct ctl *ctl, char **arguments)
{
    const char *flow;

    if (!split(arguments[0], &flow))
        return misused("this setting takes POOL/FLOW, not", arguments[0]);
    return change_setting(ctl, arguments[0], "flows", flow, arguments[-1],
                          json_string(arguments[1]));
}

static int set_state(const struct ctl *ctl, char *place, const char *state)
{
    const char *server;

    if (!split(place, &server))
        return misused("a server is written POOL/SERVER, not", place);
    return change_setting(ctl, place, "servers", server, "state", json_string(state));
}

static int run_drain(const struct ctl *ctl, char **arguments)
{
    return set_state(ctl, arguments[0], "drain");
}

static int run_ready(const struct ctl *ctl, char **arguments)
{
    return set_state(ctl, arguments[0], "ready");
}

static int run_reload(const struct ctl *ctl, char **arguments)
{
    (void)arguments;
    return change(ctl, "/v1/reload", "");
}

/* ------------------------------------------------------------------ the command line */

static const struct command {
    const char *words[2];
    int arguments;
    const char *form;                                    /* of the arguments */
    int (*run)(const struct ctl *ctl, char **arguments); /* arguments[-1]: the last word */
} commands[] = {
    {{"show", NULL}, 1, "status|listeners|pools|flows|servers|admission", run_show},
    {{"metrics", NULL}, 0, "", run_metrics},
    {{"set", "weight"}, 2, "POOL/FLOW N", run_set_weight},
    {{"set", "depth"}, 2, "POOL N, or POOL/SERVER N", run_set_depth},
    {{"set", "algorithm"}, 2, "POOL NAME", run_set_algorithm},
    {{"set", "slack"}, 2, "POOL N", run_set_option},
    {{"set", "capacity"}, 2, "POOL N/s", run_set_option},
    {{"set", "ageing"}, 2, "POOL TIME", run_set_option},
    {{"set", "at-limit"}, 2, "POOL wait|refuse", run_set_option},
    {{"set", "admission"}, 2, "POOL NAME", run_set_option},
    {{"set", "admission-action"}, 2, "POOL refuse|mark|auto", run_set_option},
    {{"set", "admission-limit"}, 2, "POOL N", run_set_option},
    {{"set", "admission-target"}, 2, "POOL TIME", run_set_option},
    {{"set", "admission-interval"}, 2, "POOL TIME", run_set_option},
    {{"set", "target"}, 2, "POOL/FLOW TIME", run_set_promise},
    {{"set", "reservation"}, 2, "POOL/FLOW N/s", run_set_promise},
    {{"set", "limit"}, 2, "POOL/FLOW N/s", run_set_promise},
    {{"set", "burst"}, 2, "POOL/FLOW N", run_set_promise},
    {{"set", "queue-limit"}, 2, "POOL/FLOW N", run_set_promise},
    {{"set", "response-target"}, 2, "POOL/FLOW TIME", run_set_promise},
    {{"drain", NULL}, 1, "POOL/SERVER", run_drain},
    {{"ready", NULL}, 1, "POOL/SERVER", run_ready},
    {{"reload", NULL}, 0, "", run_reload},
};

static int run_command(const struct ctl *ctl, char **words, int count)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *command = &commands[i];
        int used = command->words[1] != NULL ? 2 : 1;
        if (count < used || strcmp(words[0], command->words[0]) != 0 ||
            (used == 2 && strcmp(words[1], command->words[1]) != 0))
            continue;
        if (count - used == command->arguments)
            return command->run(ctl, words + used);
        fprintf(stderr, "spillctl: the form is: spillctl %s%s%s %s\n", words[0],
                used == 2 ? " " : "", used == 2 ? words[1] : "", command->form);
        return EXIT_USAGE;
    }
    if (strcmp(words[0], "set") == 0 && count > 1)
        return misused("set takes weight, depth, algorithm, slack, capacity, ageing, at-limit, "
                       "admission, admission-action, admission-limit, admission-target, "
                       "admission-interval, target, reservation, limit, burst, queue-limit or "
                       "response-target, not",
                       words[1]);
    return misused(count == 1 && strcmp(words[0], "set") == 0 ? "half a command" : "no command",
                   words[0]);
}

/* Takes the options out of the words behind the command, where negative numbers are none. */
static int take_late_options(struct ctl *ctl, char **words, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "--json") == 0 || strcmp(words[i], "-j") == 0)
            ctl->json = true;
        else
            words[kept++] = words[i];
    }
    return kept;
}

/* True to go on; else *status is the exit status. */
static bool parse_options(int argc, char **argv, struct ctl *ctl, int *status)
{
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'}, {"timeout", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},         {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int64_t seconds;
    int option;

    *status = EXIT_SUCCESS;
    while ((option = getopt_long(argc, argv, "+s:t:jVh", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            ctl->socket = optarg;
            break;
        case 't':
            if (!parse_number(optarg, &seconds) || seconds < 1 || seconds > TIMEOUT_MAX_S) {
                *status = misused("a time-out is a number of seconds from 1 to 86400, not", optarg);
                return false;
            }
            ctl->timeout_s = (unsigned)seconds;
            break;
        case 'j':
            ctl->json = true;
            break;
        case 'V':
            printf("spillctl %s\n", SPILLWAY_VERSION);
            return false;
        case 'h':
            usage(stdout);
            return false;
        default:
            fprintf(stderr, "see spillctl --help\n");
            *status = EXIT_USAGE;
            return false;
        }
    }
    return true;
}

/* A full disk or a closed pipe must not look like an empty proxy. */
static int finish_output(int status)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_SUCCESS) {
        fprintf(stderr, "spillctl: can't write the answer\n");
        status = EXIT_REFUSED;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct ctl ctl = {.socket = getenv("SPILLWAY_SOCKET"), .timeout_s = TIMEOUT_S};
    int status;

    if (ctl.socket == NULL || ctl.socket[0] == '\0')
        ctl.socket = DEFAULT_SOCKET;
    if (!parse_options(argc, argv, &ctl, &status))
        return status;
    /* Asks a server, not the proxy, and has options of its own. */
    if (optind < argc && strcmp(argv[optind], "calibrate") == 0) {
        status = calibrate_command(argc - optind, argv + optind, ctl.timeout_s, ctl.json);
        return finish_output(status);
    }
    int count = take_late_options(&ctl, argv + optind, argc - optind);
    if (count == 0) {
        usage(stderr);
        return EXIT_USAGE;
    }
    return finish_output(run_command(&ctl, argv + optind, count));
}
