/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of a loop: what settling does and in what order, the arena, messages, the end. */
#include "tests/unit/proxy/io/fixture.h"

#include <pthread.h>
#include <sched.h>

/* ------------------------------------------------------------------ messages */

struct letter {
    struct loop_message message;
    unsigned *next; /* the number that has to come next */
    unsigned number;
};

static void read_letter(struct loop *loop, struct loop_message *message)
{
    struct letter *letter = container_of(message, struct letter, message);

    (void)loop;
    assert_int_equal(letter->number, *letter->next);
    ++*letter->next;
}

static void a_chain_of_messages_runs_in_order(void **state)
{
    struct loop *loop = *state;
    struct letter letters[6];
    unsigned next = 0;

    for (unsigned i = 0; i < 6; i++)
        letters[i] = (struct letter){.message.run = read_letter, .number = i, .next = &next};
    for (unsigned i = 0; i < 4; i++)
        letters[i].message.next = &letters[i + 1].message;
    loop_post(loop, &letters[0].message, &letters[4].message);
    loop_post(loop, &letters[5].message, &letters[5].message);
    assert_int_equal(next, 0);
    turn(loop);
    assert_int_equal(next, 6);
}

static void winding_up_runs_what_was_posted(void **state)
{
    struct loop *loop = *state;
    unsigned next = 0;
    struct letter letter = {.message.run = read_letter, .next = &next};

    loop_post(loop, &letter.message, &letter.message);
    loop_wind_up(loop);
    assert_int_equal(next, 1);
}

enum { POSTERS = 3, LETTERS = 2000 };

struct poster {
    pthread_t thread;
    struct loop *loop;
    struct letter letters[LETTERS];
    unsigned next;
};

static void *post_all(void *argument)
{
    struct poster *poster = argument;

    for (unsigned i = 0; i < LETTERS; i += 2) {
        poster->letters[i].message.next = &poster->letters[i + 1].message;
        loop_post(poster->loop, &poster->letters[i].message, &poster->letters[i + 1].message);
    }
    return NULL;
}

/* The loop sleeps whenever it has nothing, and is woken each time: it would never end otherwise. */
static void messages_from_threads_all_come_in_their_order(void **state)
{
    struct loop *loop = *state;
    struct poster *posters = calloc(POSTERS, sizeof(*posters));

    assert_non_null(posters);
    for (unsigned p = 0; p < POSTERS; p++) {
        posters[p].loop = loop;
        for (unsigned i = 0; i < LETTERS; i++)
            posters[p].letters[i] =
                (struct letter){.message.run = read_letter, .number = i, .next = &posters[p].next};
        assert_int_equal(pthread_create(&posters[p].thread, NULL, post_all, &posters[p]), 0);
    }
    for (unsigned p = 0; p < POSTERS; p++)
        turn_until(loop, &posters[p].next, LETTERS);
    for (unsigned p = 0; p < POSTERS; p++)
        pthread_join(posters[p].thread, NULL);
    free(posters);
}

static void *stop_loop(void *argument)
{
    loop_stop(argument);
    return NULL;
}

static void another_thread_stops_a_sleeping_loop(void **state)
{
    struct loop *loop = *state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, stop_loop, loop), 0);
    loop_run(loop);
    pthread_join(thread, NULL);
}

struct wake_test {
    struct loop *loop;
    struct loop_message message;
    struct timer guard;
    unsigned come;
    bool lost;
};

static void on_wake_message(struct loop *loop, struct loop_message *message)
{
    container_of(message, struct wake_test, message)->come++;
    atomic_store(&loop->stopping, true);
}

static void on_guard(struct timer *timer, uint64_t now_ns)
{
    struct wake_test *test = container_of(timer, struct wake_test, guard);

    (void)now_ns;
    test->lost = true;
    atomic_store(&test->loop->stopping, true);
}

static void *post_to_sleeper(void *argument)
{
    struct wake_test *test = argument;

    while (!atomic_load(&test->loop->sleeping))
        sched_yield();
    loop_post(test->loop, &test->message, &test->message);
    return NULL;
}

/* The guard is only reached when a wake-up is lost. */
static void a_message_wakes_a_sleeping_loop(void **state)
{
    struct wake_test test = {.loop = *state, .message.run = on_wake_message};

    timer_init(&test.guard, on_guard);
    for (unsigned round = 1; round <= 50; round++) {
        pthread_t thread;
        atomic_store(&test.loop->stopping, false);
        timer_set(&test.loop->wheel, &test.guard, loop_clock_ns() + UINT64_C(20000000000));
        assert_int_equal(pthread_create(&thread, NULL, post_to_sleeper, &test), 0);
        loop_run(test.loop);
        pthread_join(thread, NULL);
        assert_false(test.lost);
        assert_int_equal(test.come, round);
    }
    timer_unlink(&test.guard);
}

/* ------------------------------------------------------------------ hooks */

struct note {
    struct turn_hook hook;
    char letter;
    struct note *add_pump; /* while running, once */
};

static char notes[32];

static void write_note(struct loop *loop, struct turn_hook *hook)
{
    struct note *note = container_of(hook, struct note, hook);
    size_t length = strlen(notes);

    assert_true(length + 1 < sizeof(notes));
    notes[length] = note->letter;
    if (note->add_pump != NULL) {
        struct note *add = note->add_pump;
        note->add_pump = NULL;
        loop_add_pump(loop, &add->hook);
    }
}

static void pumps_run_before_resets_and_each_once(void **state)
{
    struct loop *loop = *state;
    struct note again = {.hook.run = write_note, .letter = 'c'};
    struct note first = {.hook.run = write_note, .letter = 'a', .add_pump = &again};
    struct note second = {.hook.run = write_note, .letter = 'b'};
    struct note reset = {.hook.run = write_note, .letter = 'r'};
    struct note removed = {.hook.run = write_note, .letter = 'x'};

    memset(notes, 0, sizeof(notes));
    loop_add_reset(loop, &reset.hook);
    loop_add_reset(loop, &removed.hook);
    loop_remove_reset(loop, &removed.hook);
    loop_add_pump(loop, &first.hook);
    loop_add_pump(loop, &first.hook);
    loop_add_pump(loop, &second.hook);
    turn(loop);
    assert_string_equal(notes, "abcr");
    turn(loop);
    assert_string_equal(notes, "abcr");
    loop_add_pump(loop, &second.hook);
    turn(loop);
    assert_string_equal(notes, "abcrb");
}

struct sender {
    struct turn_hook hook;
    struct recorder *recorder;
};

static void send_from_pump(struct loop *loop, struct turn_hook *hook)
{
    struct sender *sender = container_of(hook, struct sender, hook);

    (void)loop;
    conn_send(&sender->recorder->conn, "from the pump", 13);
}

static void what_pumps_send_goes_out_in_the_same_turn(void **state)
{
    struct loop *loop = *state;
    struct recorder recorder;
    struct sender sender = {.hook.run = send_from_pump, .recorder = &recorder};
    char got[64];

    recorder_open(&recorder, loop, false);
    conn_send(&recorder.conn, "before and ", 11);
    loop_add_pump(loop, &sender.hook);
    turn(loop);
    assert_int_equal(recv(recorder.peer, got, sizeof(got), 0), 24);
    assert_memory_equal(got, "before and from the pump", 24);
    recorder_fini(&recorder);
}

/* ------------------------------------------------------------------ memory */

struct dead {
    struct deferred deferred;
    bool released;
};

static void release(struct deferred *deferred)
{
    container_of(deferred, struct dead, deferred)->released = true;
}

struct undertaker {
    struct turn_hook hook;
    struct dead *dead;
    bool was_released;
};

static void look_at_dead(struct loop *loop, struct turn_hook *hook)
{
    struct undertaker *undertaker = container_of(hook, struct undertaker, hook);

    (void)loop;
    undertaker->was_released = undertaker->dead->released;
}

static void objects_are_freed_behind_everything_else(void **state)
{
    struct loop *loop = *state;
    struct dead dead = {.released = false};
    struct undertaker undertaker = {.hook.run = look_at_dead, .dead = &dead, .was_released = true};

    loop_defer_free(loop, &dead.deferred, release);
    loop_add_reset(loop, &undertaker.hook);
    turn(loop);
    assert_false(undertaker.was_released);
    assert_true(dead.released);
}

static void scratch_is_trimmed_and_overflows(void **state)
{
    struct loop *loop = *state;
    uint8_t *first = loop_scratch(loop, 1000);

    memset(first, 1, 1000);
    loop_scratch_trim(loop, first, 1000, 100);
    uint8_t *second = loop_scratch(loop, 500);
    assert_ptr_equal(second, first + 100);
    /* Not the latest any more: nothing to give back. */
    loop_scratch_trim(loop, first, 100, 10);
    assert_ptr_equal(loop_scratch(loop, 1), second + 500);
    uint8_t *large = loop_scratch(loop, LOOP_ARENA_BYTES);
    memset(large, 2, LOOP_ARENA_BYTES);
    assert_int_equal(first[99], 1);
    turn(loop);
    assert_ptr_equal(loop_scratch(loop, 1), first);
}

static void kept_blocks_come_back_when_settled(void **state)
{
    struct loop *loop = *state;
    size_t capacity;
    size_t again;
    void *block = block_alloc(&loop->buffers, 100000, &capacity);

    loop_release_block(loop, block, capacity);
    loop_release_block(loop, NULL, 0);
    void *other = block_alloc(&loop->buffers, 100000, &again);
    assert_ptr_not_equal(other, block);
    block_free(&loop->buffers, other, again);
    turn(loop);
    void *first = block_alloc(&loop->buffers, 100000, &capacity);
    void *second = block_alloc(&loop->buffers, 100000, &again);
    assert_true(first == block || second == block);
    block_free(&loop->buffers, first, capacity);
    block_free(&loop->buffers, second, again);
}

/* Echoes by reference: what it sends lies in the arena. */
struct echo {
    struct recorder in, out;
};

static void echo_readable(struct conn *conn, uint8_t *bytes, size_t length)
{
    struct echo *echo = container_of(conn, struct echo, in.conn);

    conn_send(&echo->out.conn, bytes, length);
}

static const struct conn_ops echo_ops = {
    .readable = echo_readable,
    .end_of_stream = record_end,
    .failed = record_failed,
};

/*
 * More comes in one turn than the arena holds, from many connections, and the peers take nothing
 * yet: the arena is emptied in the middle of the turn, what refers to it is copied first.
 */
static void an_arena_emptied_in_mid_turn_loses_nothing(void **state)
{
    enum { CONNS = 12, EACH = 120000 };
    struct loop *loop = *state;
    struct echo *echoes = calloc(CONNS, sizeof(*echoes));
    static uint8_t bytes[EACH];
    size_t taken[CONNS] = {0};
    size_t sent[CONNS];

    assert_non_null(echoes);
    for (unsigned i = 0; i < CONNS; i++) {
        recorder_open(&echoes[i].in, loop, false);
        recorder_open(&echoes[i].out, loop, true);
        echoes[i].in.conn.ops = &echo_ops;
        fill_stream(bytes, EACH, 0);
        ssize_t got = send(echoes[i].in.peer, bytes, EACH, MSG_NOSIGNAL);
        assert_true(got > 0);
        sent[i] = (size_t)got;
    }
    turn(loop);
    assert_int_equal(loop->arena_used, 0);
    for (unsigned i = 0; i < CONNS; i++) {
        for (unsigned t = 0; t < TURNS_MAX && taken[i] < sent[i]; t++) {
            take_stream(echoes[i].out.peer, &taken[i]);
            turn(loop);
        }
        assert_int_equal(taken[i], sent[i]);
        recorder_fini(&echoes[i].in);
        recorder_fini(&echoes[i].out);
    }
    free(echoes);
}

static void a_greedy_connection_leaves_room_for_others(void **state)
{
    struct loop *loop = *state;
    struct recorder other;
    struct recorder greedy;
    static uint8_t bytes[4 << 20];
    int size = 4 << 20;

    recorder_open(&other, loop, false);
    recorder_open(&greedy, loop, false);
    if (setsockopt(greedy.peer, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
        assert_int_equal(setsockopt(greedy.peer, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    ssize_t sent = send(greedy.peer, bytes, sizeof(bytes), MSG_NOSIGNAL);
    assert_true(sent > 0);
    assert_int_equal(send(other.peer, "x", 1, MSG_NOSIGNAL), 1);
    turn(loop);
    assert_int_equal(other.length, 1);
    /* Once for its event, and once more as one that was known to have more. */
    assert_true(greedy.length < 2 * (CONN_READ_TURN_BYTES + LOOP_RECEIVE_BYTES));
    for (unsigned i = 0; i < TURNS_MAX && greedy.length < (size_t)sent; i++)
        turn(loop);
    assert_int_equal(greedy.length, sent);
    recorder_fini(&other);
    recorder_fini(&greedy);
}

/* ------------------------------------------------------------------ time */

struct bell {
    struct timer timer;
    unsigned fired;
    uint64_t fired_ns;
};

static void on_bell(struct timer *timer, uint64_t now_ns)
{
    struct bell *bell = container_of(timer, struct bell, timer);

    bell->fired++;
    bell->fired_ns = now_ns;
}

static void a_timer_wakes_the_loop(void **state)
{
    struct loop *loop = *state;
    struct bell bell = {.fired = 0};
    uint64_t deadline_ns = loop_clock_ns() + 3 * WHEEL_TICK_NS;

    timer_init(&bell.timer, on_bell);
    timer_set(&loop->wheel, &bell.timer, deadline_ns);
    turn_until(loop, &bell.fired, 1);
    assert_int_equal(bell.fired, 1);
    assert_true(bell.fired_ns >= deadline_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(a_chain_of_messages_runs_in_order),
        loop_test(winding_up_runs_what_was_posted),
        loop_test(messages_from_threads_all_come_in_their_order),
        loop_test(another_thread_stops_a_sleeping_loop),
        loop_test(a_message_wakes_a_sleeping_loop),
        loop_test(pumps_run_before_resets_and_each_once),
        loop_test(what_pumps_send_goes_out_in_the_same_turn),
        loop_test(objects_are_freed_behind_everything_else),
        loop_test(scratch_is_trimmed_and_overflows),
        loop_test(kept_blocks_come_back_when_settled),
        loop_test(an_arena_emptied_in_mid_turn_loses_nothing),
        loop_test(a_greedy_connection_leaves_room_for_others),
        loop_test(a_timer_wakes_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
