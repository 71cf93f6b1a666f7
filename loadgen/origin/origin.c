/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's frame: listening, services and what drives them. */
#include "loadgen/origin/origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loadgen/base/pattern.h"

/* The generators of a seed: service times are 0, errors this. */
#define ERROR_STREAM 1

const char *origin_protocol_name(enum origin_protocol protocol)
{
    return protocol == ORIGIN_HTTP ? "http" : "nfs";
}

/* ---------------------------------------------------------------- time and work */

static void rearm(struct origin_port *port)
{
    uint64_t next_ns = timeline_next_ns(&port->timeline);
    struct loop *loop = port->origin->loop;

    if (next_ns == UINT64_MAX)
        loop_timer_cancel(loop, &port->timer);
    else if (!timer_entry_armed(&port->timer.entry) || port->timer.entry.deadline_ns != next_ns)
        loop_timer_set(loop, &port->timer, next_ns);
}

static void port_timer(struct loop_timer *timer)
{
    struct origin_port *port = (void *)((char *)timer - offsetof(struct origin_port, timer));

    timeline_advance(&port->timeline, loop_clock_ns());
    rearm(port);
}

static void hand_over(struct service *service, struct service_job *job)
{
    struct origin_port *port = (void *)((char *)service - offsetof(struct origin_port, service));
    int error = workers_give(&port->workers, job);

    if (error) {
        fprintf(stderr, "spillorigin: no thread for the work of a request can be made: %s\n",
                strerror(-error));
        exit(3);
    }
}

static void work_finished(struct workers *workers, struct service_job *job)
{
    struct origin_port *port = (void *)((char *)workers - offsetof(struct origin_port, workers));
    uint64_t now_ns = loop_clock_ns();

    timeline_advance(&port->timeline, now_ns);
    service_finish(&port->service, job, now_ns);
    rearm(port);
}

bool origin_is_immediate(struct origin_port *port)
{
    uint64_t now_ns = port->origin->loop->now_ns;

    if (timeline_is_due(&port->timeline, now_ns))
        timeline_advance(&port->timeline, now_ns);
    return service_is_immediate(&port->service, now_ns);
}

bool origin_submit(struct origin_port *port, struct service_job *job)
{
    uint64_t now_ns = port->origin->loop->now_ns;

    if (timeline_is_due(&port->timeline, now_ns))
        timeline_advance(&port->timeline, now_ns);
    if (service_submit(&port->service, job, now_ns))
        return true;
    rearm(port);
    return false;
}

/* ---------------------------------------------------------------- errors */

const struct origin_error *origin_injects(struct origin_port *port)
{
    const struct origin_error *error =
        origin_errors_draw(&port->settings.errors, port->protocol, &port->error_rng);

    port->counters.injected += error != NULL;
    return error;
}

void origin_reset(struct stream *stream)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (stream->state != STREAM_CLOSED)
        setsockopt(stream->io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    stream_close(stream, 0);
}

/* ---------------------------------------------------------------- settings */

int origin_change(struct origin_port *port, enum origin_setting setting, const char *text)
{
    struct origin_settings settings = port->settings;
    struct timeline *timeline = &port->timeline;
    uint64_t now_ns = loop_clock_ns();

    if (origin_setting_read(&settings, setting, text) != 0 || !origin_settings_agree(&settings))
        return -EINVAL;
    port->settings = settings;
    switch (setting) {
    case ORIGIN_SETTING_SLOTS:
        timeline_set_slots(timeline, settings.slots, now_ns);
        break;
    case ORIGIN_SETTING_SERVICE:
    case ORIGIN_SETTING_DISTRIBUTION:
        timeline_set_time(timeline, &settings.time, now_ns);
        break;
    case ORIGIN_SETTING_WORK:
        port->service.burn = settings.burn;
        break;
    case ORIGIN_SETTING_SCHEDULE:
        timeline_set_schedule(timeline, &settings.schedule, now_ns);
        break;
    case ORIGIN_SETTING_STALL:
        timeline_set_stalls(timeline, &settings.stalls, now_ns);
        break;
    default: /* looked at for each request */
        break;
    }
    rearm(port);
    return 0;
}

/* ---------------------------------------------------------------- from start to end */

static void accepted(struct stream_listener *listener, int fd)
{
    struct origin_port *port = (void *)((char *)listener - offsetof(struct origin_port, listener));

    port->counters.connections++;
    if (port->protocol == ORIGIN_HTTP)
        origin_http_accept(port, fd);
    else
        origin_nfs_accept(port, fd);
}

static int port_init(struct origin *origin, enum origin_protocol protocol)
{
    struct origin_port *port = &origin->ports[protocol];
    const struct origin_settings *settings = &origin->options.settings;
    uint64_t seed = origin->options.seed + (uint64_t)protocol;
    uint64_t now_ns = loop_clock_ns();

    port->origin = origin;
    port->protocol = protocol;
    port->settings = *settings;
    port->timer.fire = port_timer;
    port->listener.accepted = accepted;
    port->listener.io.fd = -1;
    service_init(&port->service, settings->slots, &settings->time, seed);
    port->service.burn = settings->burn;
    port->service.hand_over = hand_over;
    rng_init(&port->error_rng, seed, ERROR_STREAM);
    timeline_init(&port->timeline, &port->service);
    timeline_set_schedule(&port->timeline, &settings->schedule, now_ns);
    timeline_set_stalls(&port->timeline, &settings->stalls, now_ns);
    rearm(port);
    return workers_init(&port->workers, origin->loop, work_finished);
}

int origin_init(struct origin *origin, struct loop *loop, const struct origin_options *options,
                const char **what)
{
    struct timespec wall;
    int error;

    memset(origin, 0, sizeof(*origin));
    origin->loop = loop;
    origin->options = *options;
    clock_gettime(CLOCK_REALTIME, &wall);
    origin->wall_offset_ns =
        (uint64_t)wall.tv_sec * 1000000000ULL + (uint64_t)wall.tv_nsec - loop_clock_ns();
    *what = "--file";
    error = origin_files_init(&origin->files, options->memory_bytes, options->files,
                              options->files_count, pattern_bytes(), PATTERN_BYTES,
                              origin->wall_offset_ns + loop_clock_ns());
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        int port_error = port_init(origin, (enum origin_protocol)i);

        if (port_error && !error) {
            *what = "a descriptor for worker threads";
            error = port_error;
        }
        if (error || !options->serve[i])
            continue;
        *what = i == ORIGIN_HTTP ? "--http" : "--nfs";
        error =
            stream_listen(&origin->ports[i].listener, loop,
                          (const void *)&options->address[i].address, options->address[i].length);
    }
    return error;
}

void origin_fini(struct origin *origin)
{
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        stream_listener_fini(&origin->ports[i].listener);
        workers_fini(&origin->ports[i].workers);
        service_fini(&origin->ports[i].service);
    }
    origin_http_fini(origin);
    origin_nfs_fini(origin);
    origin_files_fini(&origin->files);
}
