/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop and its turn: see loop.h for the picture and the rules. */
#include "proxy/io/loop.h"

#include "proxy/io/conn.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct scratch_overflow {
    struct scratch_overflow *next;
    max_align_t bytes[];
};

struct kept_block {
    struct kept_block *next;
    void *block;
    size_t capacity;
};

uint64_t loop_clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
    struct loop *loop = argument;

    (void)fd;
    (void)what;
    loop->tick_at_ns = 0;
}

static void on_wake(evutil_socket_t fd, short what, void *argument)
{
    uint64_t count;

    (void)what;
    (void)argument;
    /* Only to clear it: the inbox is looked at every turn. */
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

int loop_init(struct loop *loop, unsigned index)
{
    struct event_config *config;

    memset(loop, 0, sizeof(*loop));
    loop->index = index;
    TAILQ_INIT(&loop->dirty);
    LIST_INIT(&loop->resuming);
    TAILQ_INIT(&loop->pumps);
    TAILQ_INIT(&loop->resets);
    loop->now_ns = loop_clock_ns();
    timer_wheel_init(&loop->wheel, loop->now_ns);
    alarms_init(&loop->alarms);
    pthread_mutex_init(&loop->inbox_lock, NULL);
    loop->inbox_last = &loop->inbox_first;
    loop->arena = memory_alloc(LOOP_ARENA_BYTES, "a loop's receive arena");

    config = event_config_new();
    if (config == NULL)
        return -ENOMEM;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    event_config_require_features(config, EV_FEATURE_ET);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    if (loop->base == NULL)
        return -ENOSYS;
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0)
        return -errno;
    event_assign(&loop->wake_event, loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
    event_add(&loop->wake_event, NULL);
    evtimer_assign(&loop->tick, loop->base, on_tick, loop);
    return 0;
}

static void free_kept(struct loop *loop)
{
    while (loop->kept != NULL) {
        struct kept_block *kept = loop->kept;
        loop->kept = kept->next;
        block_free(&loop->buffers, kept->block, kept->capacity);
        block_free(&loop->buffers, kept, sizeof(*kept));
    }
}

void loop_fini(struct loop *loop)
{
    if (loop->base != NULL) {
        alarms_fini(&loop->alarms);
        event_del(&loop->wake_event);
        event_del(&loop->tick);
        event_base_free(loop->base);
    }
    if (loop->wake_fd > 0)
        close(loop->wake_fd);
    pthread_mutex_destroy(&loop->inbox_lock);
    free_kept(loop);
    buffer_cache_fini(&loop->buffers);
    free(loop->arena);
    loop->base = NULL;
    loop->arena = NULL;
}

static void wake(struct loop *loop)
{
    uint64_t one = 1;

    /* A full counter means that a wake-up is under way already. */
    while (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    wake(loop);
}

void loop_post(struct loop *loop, struct loop_message *first, struct loop_message *last)
{
    last->next = NULL;
    pthread_mutex_lock(&loop->inbox_lock);
    *loop->inbox_last = first;
    loop->inbox_last = &last->next;
    pthread_mutex_unlock(&loop->inbox_lock);
    if (atomic_exchange(&loop->sleeping, false))
        wake(loop);
}

static bool inbox_is_empty(struct loop *loop)
{
    pthread_mutex_lock(&loop->inbox_lock);
    bool empty = loop->inbox_first == NULL;
    pthread_mutex_unlock(&loop->inbox_lock);
    return empty;
}

static void run_inbox(struct loop *loop)
{
    pthread_mutex_lock(&loop->inbox_lock);
    struct loop_message *message = loop->inbox_first;
    loop->inbox_first = NULL;
    loop->inbox_last = &loop->inbox_first;
    pthread_mutex_unlock(&loop->inbox_lock);
    while (message != NULL) {
        struct loop_message *next = message->next;
        message->run(loop, message);
        message = next;
    }
}

void loop_release_block(struct loop *loop, void *block, size_t capacity)
{
    size_t node_capacity;

    if (block == NULL)
        return;
    struct kept_block *kept = block_alloc(&loop->buffers, sizeof(*kept), &node_capacity);
    *kept = (struct kept_block){.next = loop->kept, .block = block, .capacity = capacity};
    loop->kept = kept;
}

static void settle(struct loop *loop)
{
    struct turn_hook *hook;
    struct conn *conn;

    do {
        while ((hook = TAILQ_FIRST(&loop->pumps)) != NULL) {
            TAILQ_REMOVE(&loop->pumps, hook, link);
            hook->queued = false;
            hook->run(loop, hook);
        }
        while ((conn = TAILQ_FIRST(&loop->dirty)) != NULL)
            conn_flush(conn);
    } while (!TAILQ_EMPTY(&loop->pumps));
    while ((hook = TAILQ_FIRST(&loop->resets)) != NULL) {
        TAILQ_REMOVE(&loop->resets, hook, link);
        hook->queued = false;
        hook->run(loop, hook);
    }
    loop->arena_used = 0;
    free_kept(loop);
    while (loop->overflow != NULL) {
        struct scratch_overflow *overflow = loop->overflow;
        loop->overflow = overflow->next;
        free(overflow);
    }
}

uint8_t *loop_receive_room(struct loop *loop, size_t *room)
{
    if (LOOP_ARENA_BYTES - loop->arena_used < LOOP_RECEIVE_BYTES / 2 + LOOP_SCRATCH_BYTES)
        settle(loop);
    size_t left = LOOP_ARENA_BYTES - loop->arena_used - LOOP_SCRATCH_BYTES;
    *room = left < LOOP_RECEIVE_BYTES ? left : LOOP_RECEIVE_BYTES;
    return loop->arena + loop->arena_used;
}

void *loop_scratch(struct loop *loop, size_t size)
{
    if (LOOP_ARENA_BYTES - loop->arena_used >= size) {
        void *scratch = loop->arena + loop->arena_used;
        loop->arena_used += size;
        return scratch;
    }
    struct scratch_overflow *overflow = memory_alloc(sizeof(*overflow) + size, "scratch");
    overflow->next = loop->overflow;
    loop->overflow = overflow;
    return overflow->bytes;
}

void loop_scratch_trim(struct loop *loop, void *scratch, size_t size, size_t used)
{
    if ((uint8_t *)scratch + size == loop->arena + loop->arena_used)
        loop->arena_used -= size - used;
}

static void resume_reading(struct loop *loop)
{
    struct conn_resume_list resuming = LIST_HEAD_INITIALIZER(resuming);
    struct conn *conn;

    /* What is put on the list while it is worked off waits for the next turn. */
    resuming.lh_first = LIST_FIRST(&loop->resuming);
    if (resuming.lh_first != NULL)
        resuming.lh_first->resume_link.le_prev = &resuming.lh_first;
    LIST_INIT(&loop->resuming);
    while ((conn = LIST_FIRST(&resuming)) != NULL) {
        LIST_REMOVE(conn, resume_link);
        conn->resuming = false;
        conn_read(conn);
    }
}

static void bury(struct loop *loop)
{
    while (loop->graveyard != NULL) {
        struct deferred *deferred = loop->graveyard;
        loop->graveyard = deferred->next;
        deferred->release(deferred);
    }
}

void loop_wind_up(struct loop *loop)
{
    run_inbox(loop);
    settle(loop);
    bury(loop);
}

static void arm_tick(struct loop *loop)
{
    uint64_t next_ns = timer_wheel_next_ns(&loop->wheel);

    if (next_ns == UINT64_MAX || (loop->tick_at_ns != 0 && loop->tick_at_ns <= next_ns))
        return;
    uint64_t now_ns = loop_clock_ns();
    uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    struct timeval wait = {.tv_sec = (time_t)(wait_ns / UINT64_C(1000000000)),
                           .tv_usec = (suseconds_t)(wait_ns % UINT64_C(1000000000) / 1000)};
    event_add(&loop->tick, &wait);
    loop->tick_at_ns = next_ns;
}

void loop_run(struct loop *loop)
{
    while (!atomic_load_explicit(&loop->stopping, memory_order_relaxed)) {
        int flags = EVLOOP_ONCE;

        arm_tick(loop);
        if (!LIST_EMPTY(&loop->resuming)) {
            flags |= EVLOOP_NONBLOCK;
        } else {
            atomic_store(&loop->sleeping, true);
            if (!inbox_is_empty(loop))
                flags |= EVLOOP_NONBLOCK;
        }
        loop->now_is_old = true;
        event_base_loop(loop->base, flags);
        atomic_store_explicit(&loop->sleeping, false, memory_order_relaxed);
        run_inbox(loop);
        resume_reading(loop);
        timer_wheel_run(&loop->wheel, loop_now_ns(loop));
        settle(loop);
        bury(loop);
    }
}
