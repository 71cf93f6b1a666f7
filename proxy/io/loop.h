/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop: one thread, its connections, and the turn that they share.
 *
 *      poll ──> events: each readable connection receives once into the arena, its owner parses and
 *       ^       queues output as references into the arena; nothing is sent yet
 *       │        │
 *       │        v
 *       │      settle: turn hooks (the gates' pumps) release requests; then every connection with
 * output │       sends once; repeated until neither is left; then what still refers to the arena is
 * copied │        │ └────────┘ the arena is empty again, closed objects are freed
 *
 * So a turn costs one receive per connection that had data and one send per peer that gets any,
 * however many messages were in them.
 *
 * Rules
 * - A pointer into the arena is good until the loop settles. That is the end of the turn, or
 * earlier, when a further receive finds too little room (loop_receive_room()). Callbacks therefore
 * never keep such a pointer past their return unless they register a reset hook that makes it their
 * own.
 * - Objects are never freed in the middle of a turn: loop_defer_free() keeps them until its end, so
 * a callback may close any connection, its own included.
 * - Everything here belongs to the loop's thread, but for loop_post() and loop_stop().
 */
#ifndef SPILLWAY_IO_LOOP_H
#define SPILLWAY_IO_LOOP_H

#include "proxy/io/alarm.h"
#include "proxy/io/buffer.h"
#include "proxy/io/timer.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define LOOP_ARENA_BYTES   (UINT32_C(512) << 10)
#define LOOP_RECEIVE_BYTES (UINT32_C(256) << 10) /* at the most by one receive */
#define LOOP_SCRATCH_BYTES (UINT32_C(64) << 10)  /* kept back from receives for message heads */

struct loop;
struct conn;

/* A message to another thread's loop, embedded in what it is about. `run` is called on that thread.
 */
struct loop_message {
    struct loop_message *next;
    void (*run)(struct loop *loop, struct loop_message *message);
};

/* Something to do when the loop settles; queued at most once at a time. */
struct turn_hook {
    TAILQ_ENTRY(turn_hook) link;
    void (*run)(struct loop *loop, struct turn_hook *hook);
    bool queued;
};

struct deferred {
    struct deferred *next;
    void (*release)(struct deferred *deferred);
};

TAILQ_HEAD(turn_hooks, turn_hook);
TAILQ_HEAD(conn_list, conn);
LIST_HEAD(conn_resume_list, conn);

struct loop {
    struct event_base *base;
    unsigned index;
    uint64_t now_ns; /* monotonic; read once per turn */
    bool now_is_old;

    uint8_t *arena;
    size_t arena_used;
    struct scratch_overflow *overflow; /* scratch that did not fit, freed on settling */
    struct buffer_cache buffers;
    struct kept_block *kept; /* blocks to give back on settling */

    struct conn_list dirty;           /* have output to send */
    struct conn_resume_list resuming; /* have input to read that no event will announce again */
    struct turn_hooks pumps;          /* run when settling, before sending */
    struct turn_hooks resets; /* run when settling, after sending: copy what refers to the arena */
    struct deferred *graveyard;

    struct timer_wheel wheel;
    struct event tick;
    uint64_t tick_at_ns; /* when `tick` is armed for; 0: not */
    struct alarms alarms;

    pthread_mutex_t inbox_lock;
    struct loop_message *inbox_first, **inbox_last;
    atomic_bool sleeping; /* the poster writes to the eventfd only if it finds this set */
    atomic_bool stopping;
    int wake_fd;
    struct event wake_event;

    void *context; /* the worker's: see core/worker.h */
};

/* 0 or -errno. */
int loop_init(struct loop *loop, unsigned index);
void loop_fini(struct loop *loop);

/* Runs turns until loop_stop(). */
void loop_run(struct loop *loop);

/* Does what is left to do, without waiting for events; for when the loop does not run any more. */
void loop_wind_up(struct loop *loop);

/* Callable from any thread and from signal handlers. */
void loop_stop(struct loop *loop);

/* Callable from any thread: hands over a chain of messages, first to last, in order. */
void loop_post(struct loop *loop, struct loop_message *first, struct loop_message *last);

uint64_t loop_clock_ns(void);

/* The turn's time. */
static inline uint64_t loop_now_ns(struct loop *loop)
{
    if (loop->now_is_old) {
        loop->now_ns = loop_clock_ns();
        loop->now_is_old = false;
    }
    return loop->now_ns;
}

/* Where the next receive goes, *room bytes at the most. May settle first, so closing connections.
 */
uint8_t *loop_receive_room(struct loop *loop, size_t *room);

/* Memory for message heads, good until the loop settles. */
void *loop_scratch(struct loop *loop, size_t size);

/* Gives back the unused end of the latest loop_scratch(). */
void loop_scratch_trim(struct loop *loop, void *scratch, size_t size, size_t used);

/* Gives a block back to the cache when the loop settles: queued output may still refer to it. */
void loop_release_block(struct loop *loop, void *block, size_t capacity);

static inline void loop_add_pump(struct loop *loop, struct turn_hook *hook)
{
    if (!hook->queued) {
        hook->queued = true;
        TAILQ_INSERT_TAIL(&loop->pumps, hook, link);
    }
}

static inline void loop_add_reset(struct loop *loop, struct turn_hook *hook)
{
    if (!hook->queued) {
        hook->queued = true;
        TAILQ_INSERT_TAIL(&loop->resets, hook, link);
    }
}

static inline void loop_remove_reset(struct loop *loop, struct turn_hook *hook)
{
    if (hook->queued) {
        hook->queued = false;
        TAILQ_REMOVE(&loop->resets, hook, link);
    }
}

/* Calls release(deferred) at the end of the turn. */
static inline void loop_defer_free(struct loop *loop, struct deferred *deferred,
                                   void (*release)(struct deferred *deferred))
{
    deferred->release = release;
    deferred->next = loop->graveyard;
    loop->graveyard = deferred;
}

#endif
