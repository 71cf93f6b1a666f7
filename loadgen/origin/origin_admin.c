/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's own HTTP paths: counters, and changes of capacity while it runs. */
#include <stdio.h>
#include <string.h>

#include "loadgen/base/units.h"
#include "loadgen/origin/origin.h"

/* The value of `name` in a query string "a=1&b=2", copied into `out`; false when it is not there.
 */
static bool query_value(const char *query, const char *name, char *out, size_t size)
{
    size_t name_length = strlen(name);

    while (query && *query) {
        size_t length = strcspn(query, "&");

        if (length > name_length && strncmp(query, name, name_length) == 0 &&
            query[name_length] == '=' && length - name_length - 1 < size) {
            memcpy(out, query + name_length + 1, length - name_length - 1);
            out[length - name_length - 1] = '\0';
            return true;
        }
        query += length;
        query += *query == '&';
    }
    return false;
}

static unsigned complain(char *body, size_t size, unsigned status, const char *text)
{
    snprintf(body, size, "{\"error\": \"%s\"}\n", text);
    return status;
}

static unsigned stats(struct origin *origin, char *body, size_t size)
{
    size_t used = (size_t)snprintf(body, size, "{");

    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        const struct origin_port *port = &origin->ports[i];
        const struct service *service = &port->service;
        const struct origin_counters *counters = &port->counters;

        if (used >= size)
            break;
        used += (size_t)snprintf(
            body + used, size - used,
            "%s\n  \"%s\": {\"slots\": %u, \"mean_service_ns\": %llu, \"distribution\": \"%s\", "
            "\"running\": %u, \"waiting\": %u, \"waiting_peak\": %u, \"submitted\": %llu, "
            "\"completed\": %llu, \"busy_ns\": %llu, \"wait_ns\": %llu, \"connections\": %llu, "
            "\"requests\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu, \"errors\": %llu}",
            i ? "," : "", origin_protocol_name(port->protocol), service->slots,
            (unsigned long long)service->time.mean, distribution_name(service->time.kind),
            service->running_count, service->waiting_count, service->counters.waiting_peak,
            (unsigned long long)service->counters.submitted,
            (unsigned long long)service->counters.completed,
            (unsigned long long)service->counters.busy_ns,
            (unsigned long long)service->counters.wait_ns,
            (unsigned long long)counters->connections, (unsigned long long)counters->requests,
            (unsigned long long)counters->bytes_in, (unsigned long long)counters->bytes_out,
            (unsigned long long)counters->errors);
    }
    if (used < size)
        snprintf(body + used, size - used, "\n}\n");
    return 200;
}

/* Which protocols a change is for: a set of bits, 0 for a name that is none. */
static unsigned wanted_protocols(const char *query)
{
    char name[8];

    if (!query_value(query, "protocol", name, sizeof(name)))
        return (1U << ORIGIN_HTTP) | (1U << ORIGIN_NFS);
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        if (strcmp(name, origin_protocol_name((enum origin_protocol)i)) == 0)
            return 1U << i;
    }
    return 0;
}

static unsigned change_slots(struct origin *origin, unsigned protocols, const char *query,
                             char *body, size_t size)
{
    char text[32];
    uint64_t slots;

    if (!query_value(query, "n", text, sizeof(text)) ||
        units_parse_count(text, 0, 1000000, &slots) != 0)
        return complain(body, size, 400, "n: a number of slots from 0 to 1000000 is expected");
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        if (protocols & (1U << i))
            origin_set_slots(&origin->ports[i], (uint32_t)slots);
    }
    return stats(origin, body, size);
}

static unsigned change_service(struct origin *origin, unsigned protocols, const char *query,
                               char *body, size_t size)
{
    char text[32];
    uint64_t mean_ns = 0;
    enum distribution_kind kind = DISTRIBUTION_FIXED;
    bool has_mean = query_value(query, "mean", text, sizeof(text));

    if (has_mean && units_parse_duration_ns(text, &mean_ns) != 0)
        return complain(body, size, 400, "mean: a duration with its unit, as 20ms, is expected");
    bool has_kind = query_value(query, "distribution", text, sizeof(text));

    if (has_kind && distribution_parse(text, &kind) != 0)
        return complain(body, size, 400,
                        "distribution: one of fixed, exponential, uniform, bimodal is expected");
    if (!has_mean && !has_kind)
        return complain(body, size, 400, "mean or distribution is expected");
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        struct service *service = &origin->ports[i].service;
        struct distribution time = service->time;

        if (!(protocols & (1U << i)))
            continue;
        if (has_mean)
            time.mean = mean_ns;
        if (has_kind)
            time.kind = kind;
        service_set_time(service, &time);
    }
    return stats(origin, body, size);
}

unsigned origin_admin(struct origin *origin, bool change, const char *path, const char *query,
                      char *body, size_t body_size)
{
    if (strcmp(path, "stats") == 0)
        return change ? complain(body, body_size, 405, "counters are read with GET")
                      : stats(origin, body, body_size);
    bool slots = strcmp(path, "slots") == 0;

    if (!slots && strcmp(path, "service") != 0)
        return complain(body, body_size, 404, "one of /_origin/stats, slots, service is expected");
    if (!change)
        return stats(origin, body, body_size);
    unsigned protocols = wanted_protocols(query);

    if (protocols == 0)
        return complain(body, body_size, 400, "protocol: http or nfs is expected");
    return slots ? change_slots(origin, protocols, query, body, body_size)
                 : change_service(origin, protocols, query, body, body_size);
}
