/* SPDX-License-Identifier: Apache-2.0 */
/* The process log and the access log: what lines look like, and that a target may fail. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include "proxy/control/access_log.h"
#include "proxy/control/log.h"
#include "proxy/control/output.h"

#define SECOND_NS   UINT64_C(1000000000)
#define TEXT_BYTES  ((size_t)256 << 10)
#define WRITERS     4
#define WRITE_TIMES 500

struct fixture {
    char folder[64];
    char path[96];
    char text[TEXT_BYTES]; /* of the file, after fixture_read() */
    struct config_log config;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (fixture == NULL)
        return -1;
    strcpy(fixture->folder, "/tmp/spillway-log-XXXXXX");
    if (mkdtemp(fixture->folder) == NULL)
        return -1;
    snprintf(fixture->path, sizeof(fixture->path), "%s/log", fixture->folder);
    fixture->config.target =
        (struct config_output){.kind = CONFIG_OUTPUT_FILE, .text = fixture->path};
    fixture->config.access =
        (struct config_output){.kind = CONFIG_OUTPUT_FILE, .text = fixture->path};
    fixture->config.level = CONFIG_LOG_INFO;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    log_close();
    access_log_close();
    snprintf(command, sizeof(command), "%s/log.old", fixture->folder);
    unlink(command);
    unlink(fixture->path);
    rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static const char *fixture_read(struct fixture *fixture)
{
    int fd = open(fixture->path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, fixture->text, sizeof(fixture->text) - 1) : 0;

    assert_true(fd >= 0);
    close(fd);
    assert_true(count >= 0);
    fixture->text[count] = '\0';
    return fixture->text;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* ------------------------------------------------------------------ the process log */

static void lines_have_time_and_level(void **state)
{
    struct fixture *fixture = *state;
    unsigned year, month, day, hour, minute, second, milli;
    char level[16];

    assert_int_equal(log_open(&fixture->config), 0);
    log_notice("hello %d", 42);
    const char *text = fixture_read(fixture);
    assert_int_equal(sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %15[a-z]: hello 42", &year, &month,
                            &day, &hour, &minute, &second, &milli, level),
                     8);
    assert_string_equal(level, "notice");
    assert_int_equal(count_lines(text), 1);
}

static void levels_below_the_limit_are_left_out(void **state)
{
    struct fixture *fixture = *state;

    fixture->config.level = CONFIG_LOG_WARNING;
    assert_int_equal(log_open(&fixture->config), 0);
    log_error("one");
    log_warning("two");
    log_notice("three");
    log_debug("four");
    assert_true(log_would_write(CONFIG_LOG_WARNING));
    assert_false(log_would_write(CONFIG_LOG_NOTICE));
    assert_int_equal(count_lines(fixture_read(fixture)), 2);
    assert_null(strstr(fixture->text, "three"));
}

static void what_a_peer_sent_can_not_break_a_line(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(log_open(&fixture->config), 0);
    log_error("bad name '%s'", "x\n2026-01-01T00:00:00.000Z error: forged\r\033[2J\x01\xff");
    const char *text = fixture_read(fixture);
    assert_int_equal(count_lines(text), 1);
    for (const char *byte = text; *byte != '\n'; byte++)
        assert_true(*byte >= 0x20 && *byte <= 0x7e);
}

static void json_lines_are_json(void **state)
{
    struct fixture *fixture = *state;

    fixture->config.format = CONFIG_LOG_JSON;
    assert_int_equal(log_open(&fixture->config), 0);
    log_warning("quote \" backslash \\ line\nfeed");
    json_t *object = json_loads(fixture_read(fixture), 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(object, "message")),
                        "quote \" backslash \\ line\nfeed");
    assert_non_null(json_object_get(object, "time"));
    json_decref(object);
}

static void a_line_too_long_is_cut_and_still_a_line(void **state)
{
    struct fixture *fixture = *state;
    static char many[20000];

    memset(many, '"', sizeof(many) - 1);
    fixture->config.format = CONFIG_LOG_JSON;
    assert_int_equal(log_open(&fixture->config), 0);
    log_error("%s", many);
    log_error("after");
    char *second = strchr(fixture_read(fixture), '\n');
    assert_non_null(second);
    second[0] = '\0';
    json_t *object = json_loads(fixture->text, 0, NULL);
    assert_non_null(object);
    json_decref(object);
    assert_non_null(strstr(second + 1, "after"));
}

static void a_rotated_file_is_opened_again_under_its_name(void **state)
{
    struct fixture *fixture = *state;
    char old[128];

    assert_int_equal(log_open(&fixture->config), 0);
    log_error("before");
    snprintf(old, sizeof(old), "%s.old", fixture->path);
    assert_int_equal(rename(fixture->path, old), 0);
    log_error("still the old one");
    assert_int_equal(log_reopen(), 0);
    log_error("behind");
    assert_int_equal(count_lines(fixture_read(fixture)), 1);
    assert_non_null(strstr(fixture->text, "behind"));
}

static void a_bad_target_leaves_the_old_one(void **state)
{
    struct fixture *fixture = *state;
    struct config_log bad = fixture->config;

    assert_int_equal(log_open(&fixture->config), 0);
    bad.target.text = "/nonexistent/folder/log";
    assert_int_equal(log_open(&bad), -ENOENT);
    log_error("here");
    assert_int_equal(count_lines(fixture_read(fixture)), 1);
}

/* /dev/full fails every write as a full disk does. */
static void lines_for_a_full_disk_are_counted(void **state)
{
    struct fixture *fixture = *state;
    uint64_t before = log_dropped();

    fixture->config.target.text = "/dev/full";
    assert_int_equal(log_open(&fixture->config), 0);
    log_error("one");
    log_error("two");
    assert_int_equal(log_dropped() - before, 2);
    fixture->config.target.text = fixture->path;
    assert_int_equal(log_open(&fixture->config), 0);
    log_error("three");
    log_error("four");
    assert_int_equal(count_lines(fixture_read(fixture)), 3);
    assert_non_null(strstr(fixture->text, "2 log lines could not be written"));
}

static void repeated_faults_are_said_once_a_second(void **state)
{
    struct fixture *fixture = *state;
    struct log_limit limit = {0};

    assert_int_equal(log_open(&fixture->config), 0);
    for (int i = 0; i < 10; i++)
        log_limited(&limit, 5 * SECOND_NS + (uint64_t)i, CONFIG_LOG_ERROR, "fault %d", i);
    assert_int_equal(count_lines(fixture_read(fixture)), 1);
    log_limited(&limit, 6 * SECOND_NS, CONFIG_LOG_ERROR, "fault later");
    assert_int_equal(count_lines(fixture_read(fixture)), 2);
    assert_non_null(strstr(fixture->text, "fault later (and 9 like it left out)"));
    log_limited(&limit, 7 * SECOND_NS, CONFIG_LOG_ERROR, "fault last");
    assert_non_null(strstr(fixture_read(fixture), "fault last\n"));
}

static void *write_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < WRITE_TIMES; i++) {
        log_error("line %04d of a writer", i);
        if (i % 100 == 50)
            log_reopen();
    }
    return NULL;
}

static void writers_do_not_mix_their_lines(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[WRITERS];

    assert_int_equal(log_open(&fixture->config), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, NULL), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    const char *text = fixture_read(fixture);
    assert_int_equal(count_lines(text), WRITERS * WRITE_TIMES);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        assert_int_equal(strcspn(line, "\n"), strlen("2026-01-01T00:00:00.000Z error: ") +
                                                  strlen("line 0000 of a writer"));
}

/* ------------------------------------------------------------------ outputs */

/* A pipe that has room for a part of a line only. */
static void a_torn_line_does_not_swallow_the_next(void **state)
{
    static char block[1 << 20];
    struct output output = OUTPUT_INITIALISER(-1);
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    output.fd = ends[1];
    memset(block, 'x', sizeof(block));
    block[sizeof(block) - 1] = '\n';
    assert_false(output_write(&output, block, sizeof(block)));
    assert_int_equal(output.dropped, 1);
    while (read(ends[0], block, sizeof(block)) > 0)
        continue;
    assert_true(output_write(&output, "next\n", 5));
    assert_int_equal(read(ends[0], block, sizeof(block)), 6);
    assert_memory_equal(block, "\nnext\n", 6);
    assert_true(output_write(&output, "last\n", 5));
    assert_int_equal(read(ends[0], block, sizeof(block)), 5);
    close(ends[0]);
    close(ends[1]);
}

/* ------------------------------------------------------------------ the access log */

static struct access_record record_of(const struct sockaddr_in *client, const char *target)
{
    return (struct access_record){
        .client = (const struct sockaddr *)client,
        .listener = "web",
        .pool = "farm",
        .flow = "gold",
        .server = "s1",
        .protocol = "HTTP/1.1",
        .operation = "GET",
        .operation_length = 3,
        .target = target,
        .target_length = strlen(target),
        .status = 200,
        .bytes_in = 10,
        .bytes_out = 2000,
        .wait_ns = 1000000,
        .service_ns = 2000000,
        .total_ns = 3500000,
        .end = "done",
    };
}

static struct sockaddr_in client_address(void)
{
    struct sockaddr_in client = {.sin_family = AF_INET, .sin_port = htons(1234)};

    inet_pton(AF_INET, "192.0.2.7", &client.sin_addr);
    return client;
}

static void an_access_line_says_it_all(void **state)
{
    struct fixture *fixture = *state;
    struct sockaddr_in client = client_address();
    struct access_record record = record_of(&client, "/a \"b\"\n");
    struct access_buffer *buffer = access_buffer_create();

    assert_int_equal(access_log_open(&fixture->config), 0);
    access_log_write(buffer, &record, SECOND_NS);
    access_log_flush(buffer, SECOND_NS, true);
    const char *text = strchr(fixture_read(fixture), ' ');
    assert_non_null(text);
    assert_string_equal(text, " 192.0.2.7:1234 web farm/gold s1 \"HTTP/1.1 GET /a \\\"b\\\"\\x0a\" "
                              "200 in=10 out=2000 wait=1000us service=2000us total=3500us done\n");
    access_buffer_destroy(buffer);
}

static void an_access_line_in_json_is_json(void **state)
{
    struct fixture *fixture = *state;
    struct access_record record = record_of(NULL, "/\"\\\n\x01\xff");
    struct access_buffer *buffer = access_buffer_create();

    fixture->config.format = CONFIG_LOG_JSON;
    assert_int_equal(access_log_open(&fixture->config), 0);
    record.server = NULL;
    access_log_write(buffer, &record, SECOND_NS);
    access_log_flush(buffer, SECOND_NS, true);
    json_t *object = json_loads(fixture_read(fixture), 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "server")), "-");
    assert_string_equal(json_string_value(json_object_get(object, "operation")), "GET");
    assert_string_equal(json_string_value(json_object_get(object, "target")),
                        "/\"\\\n\x01\xc3\xbf");
    assert_int_equal(json_integer_value(json_object_get(object, "wait_us")), 1000);
    assert_int_equal(json_integer_value(json_object_get(object, "status")), 200);
    json_decref(object);
    access_buffer_destroy(buffer);
}

static void lines_wait_for_a_second_or_a_full_buffer(void **state)
{
    struct fixture *fixture = *state;
    struct access_record record = record_of(NULL, "/");
    struct access_buffer *buffer = access_buffer_create();

    assert_int_equal(access_log_open(&fixture->config), 0);
    access_log_write(buffer, &record, SECOND_NS);
    access_log_flush(buffer, 2 * SECOND_NS - 1, false);
    assert_int_equal(count_lines(fixture_read(fixture)), 0);
    access_log_flush(buffer, 2 * SECOND_NS, false);
    assert_int_equal(count_lines(fixture_read(fixture)), 1);
    for (int i = 0; i < 1000; i++)
        access_log_write(buffer, &record, 3 * SECOND_NS);
    assert_true(count_lines(fixture_read(fixture)) > 1);
    access_buffer_destroy(buffer);
    assert_int_equal(count_lines(fixture_read(fixture)), 1001);
}

static void the_longest_line_is_a_whole_line(void **state)
{
    struct fixture *fixture = *state;
    static char target[10000];
    struct access_buffer *buffer = access_buffer_create();

    memset(target, 0xff, sizeof(target) - 1);
    fixture->config.format = CONFIG_LOG_JSON;
    assert_int_equal(access_log_open(&fixture->config), 0);
    struct access_record record = record_of(NULL, target);
    record.operation = record.listener = record.pool = record.flow = target;
    record.operation_length = record.target_length;
    for (int i = 0; i < 3; i++)
        access_log_write(buffer, &record, SECOND_NS);
    access_buffer_destroy(buffer);
    const char *line = fixture_read(fixture);
    for (int i = 0; i < 3; i++) {
        json_t *object = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        assert_non_null(object);
        json_decref(object);
        line = strchr(line, '\n') + 1;
    }
    assert_int_equal(*line, '\0');
}

static void an_access_log_that_is_off_writes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct access_record record = record_of(NULL, "/");
    struct access_buffer *buffer = access_buffer_create();

    fixture->config.access = (struct config_output){.kind = CONFIG_OUTPUT_OFF};
    assert_int_equal(access_log_open(&fixture->config), 0);
    assert_false(access_log_enabled());
    access_log_write(buffer, &record, SECOND_NS);
    access_buffer_destroy(buffer);
    assert_int_equal(access(fixture->path, F_OK), -1);
}

static void lost_access_lines_are_counted_and_said(void **state)
{
    struct fixture *fixture = *state;
    struct access_record record = record_of(NULL, "/");
    struct access_buffer *buffer = access_buffer_create();
    uint64_t before = access_log_dropped();

    assert_int_equal(log_open(&fixture->config), 0);
    fixture->config.access.text = "/dev/full";
    assert_int_equal(access_log_open(&fixture->config), 0);
    for (int i = 0; i < 3; i++)
        access_log_write(buffer, &record, SECOND_NS);
    access_log_flush(buffer, SECOND_NS, true);
    assert_int_equal(access_log_dropped() - before, 3);
    fixture->config.access.text = "/dev/null";
    assert_int_equal(access_log_open(&fixture->config), 0);
    access_log_write(buffer, &record, SECOND_NS);
    access_buffer_destroy(buffer);
    assert_non_null(strstr(fixture_read(fixture), "3 access log lines could not be written"));
}

#define LOG_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(lines_have_time_and_level),
        LOG_TEST(levels_below_the_limit_are_left_out),
        LOG_TEST(what_a_peer_sent_can_not_break_a_line),
        LOG_TEST(json_lines_are_json),
        LOG_TEST(a_line_too_long_is_cut_and_still_a_line),
        LOG_TEST(a_rotated_file_is_opened_again_under_its_name),
        LOG_TEST(a_bad_target_leaves_the_old_one),
        LOG_TEST(lines_for_a_full_disk_are_counted),
        LOG_TEST(repeated_faults_are_said_once_a_second),
        LOG_TEST(writers_do_not_mix_their_lines),
        LOG_TEST(a_torn_line_does_not_swallow_the_next),
        LOG_TEST(an_access_line_says_it_all),
        LOG_TEST(an_access_line_in_json_is_json),
        LOG_TEST(lines_wait_for_a_second_or_a_full_buffer),
        LOG_TEST(the_longest_line_is_a_whole_line),
        LOG_TEST(an_access_log_that_is_off_writes_nothing),
        LOG_TEST(lost_access_lines_are_counted_and_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
