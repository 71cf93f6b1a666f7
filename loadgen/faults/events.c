/* SPDX-License-Identifier: Apache-2.0 */
/* Events as lines. */
#include "loadgen/faults/events.h"

#include <jansson.h>
#include <stdio.h>

static void put_json(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(object);
    fputc('\n', stdout);
    fflush(stdout);
}

void events_whole(const struct events *events, const char *name)
{
    if (events->json) {
        put_json(json_pack("{s:s}", "event", name));
        return;
    }
    printf("%s\n", name);
    fflush(stdout);
}

void events_tell(const struct events *events, const struct event *event, uint64_t now_ns)
{
    double at_s = (double)(now_ns - events->start_ns) / 1e9;

    if (events->json) {
        json_t *object = json_pack("{s:s, s:I, s:s, s:f}", "event", event->name, "fault",
                                   (json_int_t)event->fault, "kind", event->kind, "at_s", at_s);

        if (event->pid)
            json_object_set_new(object, "pid", json_integer(event->pid));
        if (event->how)
            json_object_set_new(object, "how", json_string(event->how));
        if (event->why)
            json_object_set_new(object, "why", json_string(event->why));
        if (event->counted)
            json_object_set_new(object, event->unit, json_integer((json_int_t)event->count));
        put_json(object);
        return;
    }
    printf("%9.3f s  %-7s %-7s", at_s, event->kind, event->name);
    if (event->pid)
        printf("  process %d", event->pid);
    if (event->how)
        printf("  %s", event->how);
    if (event->why)
        printf("  %s", event->why);
    if (event->counted)
        printf("  %s %llu", event->unit, (unsigned long long)event->count);
    putchar('\n');
    fflush(stdout);
}
