/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's frame: listening, services and their timers. */
#include "loadgen/origin/origin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loadgen/base/pattern.h"

const char *origin_protocol_name(enum origin_protocol protocol)
{
    return protocol == ORIGIN_HTTP ? "http" : "nfs";
}

static void rearm(struct origin_port *port)
{
    uint64_t next_ns = service_next_ns(&port->service);
    struct loop *loop = port->origin->loop;

    if (next_ns == UINT64_MAX)
        loop_timer_cancel(loop, &port->timer);
    else if (!timer_entry_armed(&port->timer.entry) || port->timer.entry.deadline_ns != next_ns)
        loop_timer_set(loop, &port->timer, next_ns);
}

static void port_timer(struct loop_timer *timer)
{
    struct origin_port *port = (void *)((char *)timer - offsetof(struct origin_port, timer));

    service_advance(&port->service, loop_clock_ns());
    rearm(port);
}

bool origin_submit(struct origin_port *port, struct service_job *job)
{
    if (service_submit(&port->service, job, port->origin->loop->now_ns))
        return true;
    rearm(port);
    return false;
}

void origin_set_slots(struct origin_port *port, uint32_t slots)
{
    service_set_slots(&port->service, slots, port->origin->loop->now_ns);
    rearm(port);
}

static void accepted(struct stream_listener *listener, int fd)
{
    struct origin_port *port = (void *)((char *)listener - offsetof(struct origin_port, listener));

    port->counters.connections++;
    if (port->protocol == ORIGIN_HTTP)
        origin_http_accept(port, fd);
    else
        origin_nfs_accept(port, fd);
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
    error = origin_files_init(&origin->files, options->files, options->files_count, pattern_bytes(),
                              PATTERN_BYTES, origin->wall_offset_ns + loop_clock_ns());
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        struct origin_port *port = &origin->ports[i];

        port->origin = origin;
        port->protocol = (enum origin_protocol)i;
        port->timer.fire = port_timer;
        port->listener.accepted = accepted;
        port->listener.io.fd = -1;
        service_init(&port->service, options->slots, &options->time, options->seed + (uint64_t)i);
        if (error || !options->serve[i])
            continue;
        *what = i == ORIGIN_HTTP ? "--http" : "--nfs";
        error = stream_listen(&port->listener, loop, (const void *)&options->address[i].address,
                              options->address[i].length);
    }
    return error;
}

void origin_fini(struct origin *origin)
{
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        stream_listener_fini(&origin->ports[i].listener);
        service_fini(&origin->ports[i].service);
    }
    origin_http_fini(origin);
    origin_nfs_fini(origin);
    origin_files_fini(&origin->files);
}
