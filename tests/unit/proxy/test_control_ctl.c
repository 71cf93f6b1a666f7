/* SPDX-License-Identifier: Apache-2.0 */
/* spillctl's pieces: the client against a socket that answers what it is told, and the tables. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/control/ctl/client.h"
#include "proxy/control/ctl/table.h"

#define TIMEOUT_S 20

/* ------------------------------------------------------------------ the client */

struct peer {
    char folder[64];
    struct sockaddr_un address;
    int fd;
    pthread_t thread;
    const char *answer;
    char request[1024];
};

/* Answers one connection once it has read an empty line and what may follow it at once. */
static void *serve_one(void *argument)
{
    struct peer *peer = argument;
    int fd = accept(peer->fd, NULL, NULL);
    size_t used = 0;

    while (used < sizeof(peer->request) - 1 && strstr(peer->request, "\r\n\r\n") == NULL) {
        ssize_t count = read(fd, peer->request + used, sizeof(peer->request) - 1 - used);
        if (count <= 0)
            break;
        used += (size_t)count;
    }
    (void)!write(fd, peer->answer, strlen(peer->answer));
    close(fd);
    return NULL;
}

static int set_up(void **state)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL)
        return -1;
    strcpy(peer->folder, "/tmp/spillway-ctl-XXXXXX");
    if (mkdtemp(peer->folder) == NULL)
        return -1;
    peer->address.sun_family = AF_UNIX;
    snprintf(peer->address.sun_path, sizeof(peer->address.sun_path), "%s/socket", peer->folder);
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *state = peer;
    return bind(peer->fd, (struct sockaddr *)&peer->address, sizeof(peer->address)) < 0 ||
                   listen(peer->fd, 1) < 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    struct peer *peer = *state;

    if (peer->fd >= 0)
        close(peer->fd);
    unlink(peer->address.sun_path);
    rmdir(peer->folder);
    free(peer);
    return 0;
}

static int ask(struct peer *peer, const char *body, const char *answer,
               struct client_answer *received)
{
    peer->answer = answer;
    assert_int_equal(pthread_create(&peer->thread, NULL, serve_one, peer), 0);
    int error = client_ask(peer->address.sun_path, "/v1/x", body, TIMEOUT_S, received);
    pthread_join(peer->thread, NULL);
    return error;
}

static void an_answer_is_status_and_body(void **state)
{
    struct peer *peer = *state;
    struct client_answer answer;

    assert_int_equal(
        ask(peer, NULL, "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nline\n\r\n\r\nx", &answer), 0);
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.body, "line\n\r\n\r\nx");
    assert_int_equal(answer.length, strlen(answer.body));
    assert_memory_equal(peer->request, "GET /v1/x HTTP/1.0\r\n", 20);
    free(answer.body);
}

static void a_body_makes_it_a_post(void **state)
{
    struct peer *peer = *state;
    struct client_answer answer;

    assert_int_equal(
        ask(peer, "{\"a\":1}", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", &answer), 0);
    assert_int_equal(answer.length, 0);
    assert_memory_equal(peer->request, "POST /v1/x HTTP/1.0\r\n", 21);
    assert_non_null(strstr(peer->request, "Content-Length: 7\r\n"));
    free(answer.body);
}

static void half_an_answer_is_none(void **state)
{
    static const char *const bad[] = {
        "",
        "HTTP/1.1 200 OK\r\n",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nlong",
    };
    struct peer *peer = *state;
    struct client_answer answer;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(peer->request, 0, sizeof(peer->request));
        assert_int_equal(ask(peer, NULL, bad[i], &answer), -EPROTO);
    }
}

static void large_answers_arrive_whole(void **state)
{
    static char large[300000];
    struct peer *peer = *state;
    struct client_answer answer;
    int head = snprintf(large, sizeof(large), "HTTP/1.1 200 OK\r\n\r\n");

    memset(large + head, 'x', sizeof(large) - (size_t)head - 1);
    assert_int_equal(ask(peer, NULL, large, &answer), 0);
    assert_int_equal(answer.length, sizeof(large) - (size_t)head - 1);
    assert_string_equal(answer.body, large + head);
    free(answer.body);
}

static void sockets_that_are_not_there_are_errors(void **state)
{
    struct peer *peer = *state;
    struct client_answer answer;
    char path[256];

    assert_int_equal(client_ask("/nonexistent/socket", "/", NULL, TIMEOUT_S, &answer), -ENOENT);
    close(peer->fd);
    peer->fd = -1;
    assert_int_equal(client_ask(peer->address.sun_path, "/", NULL, TIMEOUT_S, &answer),
                     -ECONNREFUSED);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(client_ask(path, "/", NULL, TIMEOUT_S, &answer), -ENAMETOOLONG);
}

static void names_are_encoded_for_a_path(void **state)
{
    char *text = client_encode("unix:/run/a b%\xc3\xa9~-._");

    (void)state;
    assert_string_equal(text, "unix%3A%2Frun%2Fa%20b%25%C3%A9~-._");
    free(text);
    text = client_encode("");
    assert_string_equal(text, "");
    free(text);
}

/* ------------------------------------------------------------------ tables */

static void times_and_sizes_have_units(void **state)
{
    static const struct {
        double value;
        const char *text;
    } times[] = {{0, "0us"},      {0.0000125, "12.5us"}, {0.000999, "999us"}, {0.0015, "1.50ms"},
                 {0.25, "250ms"}, {1.5, "1.50s"},        {90, "90.0s"},       {3600, "3600s"}},
      sizes[] = {{0, "0B"}, {1023, "1023B"}, {1536, "1.5KiB"}, {1073741824.0 * 500, "500GiB"}};
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        table_format_seconds(text, sizeof(text), times[i].value);
        assert_string_equal(text, times[i].text);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        table_format_bytes(text, sizeof(text), sizes[i].value);
        assert_string_equal(text, sizes[i].text);
    }
}

static void columns_are_aligned(void **state)
{
    static const struct column columns[] = {
        {"NAME", COLUMN_TEXT, "name", NULL},      {"N", COLUMN_COUNT, "n", NULL},
        {"SHARE", COLUMN_PERCENT, "share", NULL}, {"P99", COLUMN_SECONDS, "wait", "p99_seconds"},
        {"STATE", COLUMN_TEXT, "state", NULL},
    };
    json_t *rows = json_pack("[{s:s,s:i,s:f,s:{s:i,s:f},s:s},{s:s,s:{s:i,s:f},s:s}]", "name",
                             "gold-\xc3\xa9", "n", 12345, "share", 0.5, "wait", "count", 1,
                             "p99_seconds", 0.002, "state", "ready", "name", "x\033[2J", "wait",
                             "count", 0, "p99_seconds", 0.0, "state", "dead");
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    assert_non_null(rows);
    assert_int_equal(table_print(out, columns, 5, rows), 0);
    fclose(out);
    assert_string_equal(text, "NAME        N  SHARE     P99  STATE\n"
                              "gold-\xc3\xa9  12345  50.0%  2.00ms  ready\n"
                              "x?[2J       -      -       -  dead\n");
    free(text);
    json_decref(rows);
}

/* What nothing was promised is a dash; the options shown are those the algorithm reads. */
static void promises_and_options_have_columns(void **state)
{
    static const struct column columns[] = {
        {"ALGORITHM", COLUMN_TEXT, "algorithm", NULL},
        {"OPTIONS", COLUMN_OPTIONS, "algorithm", NULL},
        {"TARGET", COLUMN_TARGET, "target", NULL},
        {"LIMIT", COLUMN_RATE, "limit", NULL},
    };
    static const char rows_text[] =
        "[{\"algorithm\": \"hybrid\", \"slack\": 2, \"target\": 0.02, \"limit\": 500},"
        "{\"algorithm\": \"scf\", \"ageing_seconds\": 0.00025, \"target\": 0, \"limit\": 0},"
        "{\"algorithm\": \"mclock\", \"at_limit_policy\": \"wait\"},"
        "{\"algorithm\": \"wfq\", \"capacity_per_second\": 0},"
        "{\"algorithm\": \"wfq\", \"capacity_per_second\": 7},"
        "{\"algorithm\": \"fifo\", \"slack\": 2}]";
    json_t *rows = json_loads(rows_text, 0, NULL);
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    assert_non_null(rows);
    assert_int_equal(table_print(out, columns, 4, rows), 0);
    fclose(out);
    assert_string_equal(text, "ALGORITHM  OPTIONS        TARGET  LIMIT\n"
                              "hybrid     slack=2        20.0ms  500/s\n"
                              "scf        ageing=250us        -      -\n"
                              "mclock     at-limit=wait       -      -\n"
                              "wfq        -                   -      -\n"
                              "wfq        capacity=7/s        -      -\n"
                              "fifo       -                   -      -\n");
    free(text);
    json_decref(rows);
}

/* What nothing was measured of is a dash, and the table fits a terminal. */
static void admission_has_a_table(void **state)
{
    static const char rows_text[] =
        "[{\"name\": \"farm\", \"admission\": \"duk\", \"admission_action\": \"refuse\","
        "\"offered\": 12345678, \"admitted\": 10345678, \"admission_refused\": 2000000,"
        "\"marked\": 0, \"admission_capacity_per_second\": 512.4, \"admission_share\": 0.162,"
        "\"admission_allowed\": 4.25, \"admission_measured_seconds\": 0.0352},"
        "{\"name\": \"array\", \"admission\": \"none\", \"admission_action\": \"mark\","
        "\"offered\": 7, \"admitted\": 7, \"admission_refused\": 0,"
        "\"marked\": 0, \"admission_capacity_per_second\": 0.0, \"admission_share\": 0.0,"
        "\"admission_allowed\": 0.0, \"admission_measured_seconds\": 0.0}]";
    json_t *rows = json_loads(rows_text, 0, NULL);
    char *text = NULL;
    size_t length;
    size_t count;
    const struct column *columns = table_columns("admission", &count);
    FILE *out = open_memstream(&text, &length);

    (void)state;
    assert_non_null(rows);
    assert_int_equal(table_print(out, columns, count, rows), 0);
    fclose(out);
    assert_string_equal(text, "POOL   POLICY  ACTION   OFFERED  ADMITTED  REFUSED  MARKED  "
                              "CAPACITY      P   K*  INTERVAL\n"
                              "farm   duk     refuse  12345678  10345678  2000000       0     "
                              "512/s  16.2%  4.2    35.2ms\n"
                              "array  none    mark           7         7        0       0         "
                              "-   0.0%    -         -\n");
    assert_true(strchr(text, '\n') - text <= 100);
    free(text);
    json_decref(rows);
}

static void what_is_no_table_is_refused(void **state)
{
    json_t *object = json_object();
    size_t count;
    const struct column *columns = table_columns("pools", &count);
    FILE *out = fopen("/dev/null", "we");

    (void)state;
    assert_non_null(out);
    assert_non_null(columns);
    assert_null(table_columns("elephants", &count));
    assert_int_equal(table_print(out, columns, count, object), -EPROTO);
    assert_int_equal(table_print_status(out, NULL), -EPROTO);
    assert_int_equal(table_print_status(out, object), 0);
    fclose(out);
    json_decref(object);
}

#define PEER_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEER_TEST(an_answer_is_status_and_body),
        PEER_TEST(a_body_makes_it_a_post),
        PEER_TEST(half_an_answer_is_none),
        PEER_TEST(large_answers_arrive_whole),
        PEER_TEST(sockets_that_are_not_there_are_errors),
        cmocka_unit_test(names_are_encoded_for_a_path),
        cmocka_unit_test(times_and_sizes_have_units),
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(promises_and_options_have_columns),
        cmocka_unit_test(admission_has_a_table),
        cmocka_unit_test(what_is_no_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
