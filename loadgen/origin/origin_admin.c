/* SPDX-License-Identifier: Apache-2.0 */
/* The origin's own HTTP paths: counters, and changes of settings while it runs. */
#include <stdio.h>
#include <string.h>

#include "loadgen/origin/origin.h"

#define VALUE_BYTES 1024

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes the coding of a query's value in place. A '%' that begins no code is itself, so that
 * "50%:10s" may be written as it is. */
static void decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0) {
            *to++ = (char)(hex_digit(from[1]) * 16 + hex_digit(from[2]));
            from += 2;
        } else {
            *to++ = *from == '+' ? ' ' : *from;
        }
    }
    *to = '\0';
}

/* The value of `name` in a query string "a=1&b=2", decoded into `out` of VALUE_BYTES; false when it
 * is not there. */
static bool query_value(const char *query, const char *name, char *out)
{
    size_t name_length = strlen(name);

    while (query && *query) {
        size_t length = strcspn(query, "&");

        if (length > name_length && strncmp(query, name, name_length) == 0 &&
            query[name_length] == '=' && length - name_length - 1 < VALUE_BYTES) {
            memcpy(out, query + name_length + 1, length - name_length - 1);
            out[length - name_length - 1] = '\0';
            decode(out);
            return true;
        }
        query += length;
        query += *query == '&';
    }
    return false;
}

static unsigned complain(char *body, size_t size, unsigned status, const char *what,
                         const char *expected)
{
    snprintf(body, size, "{\"error\": \"%s: %s expected\"}\n", what, expected);
    return status;
}

static int port_stats(const struct origin_port *port, char *out, size_t size)
{
    const struct service *service = &port->service;
    const struct origin_counters *counters = &port->counters;
    const struct origin_settings *settings = &port->settings;
    double mean_ns = (double)service->time.mean * service->time_factor;
    char errors[ORIGIN_ERRORS_TEXT];

    return snprintf(
        out, size,
        "\"%s\": {\"slots\": %u, \"slots_set\": %u, \"mean_service_ns\": %.0f, "
        "\"distribution\": \"%s\", \"work\": \"%s\", \"capacity_per_s\": %.3f, "
        "\"schedule_step\": %zu, \"schedule_steps\": %zu, \"stalled\": %s, \"error\": \"%s\", "
        "\"retry_after_s\": %u, \"slow_body_bytes_per_s\": %llu, \"first_byte_ns\": %llu, "
        "\"running\": %u, \"waiting\": %u, \"waiting_peak\": %u, \"submitted\": %llu, "
        "\"completed\": %llu, \"busy_ns\": %llu, \"wait_ns\": %llu, \"connections\": %llu, "
        "\"requests\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu, \"errors\": %llu, "
        "\"injected\": %llu}",
        origin_protocol_name(port->protocol), service->slots, port->timeline.slots, mean_ns,
        distribution_name(service->time.kind), service->burn ? "cpu" : "wait",
        mean_ns > 0 ? (double)service->slots * 1e9 / mean_ns : 0.0, port->timeline.step,
        port->timeline.schedule.count,
        port->origin->loop->now_ns < service->stalled_ns ? "true" : "false",
        origin_errors_format(&settings->errors, errors), settings->retry_after_s,
        (unsigned long long)settings->slow_body_bytes_per_s,
        (unsigned long long)settings->first_byte_ns, service->running_count, service->waiting_count,
        service->counters.waiting_peak, (unsigned long long)service->counters.submitted,
        (unsigned long long)service->counters.completed,
        (unsigned long long)service->counters.busy_ns,
        (unsigned long long)service->counters.wait_ns, (unsigned long long)counters->connections,
        (unsigned long long)counters->requests, (unsigned long long)counters->bytes_in,
        (unsigned long long)counters->bytes_out, (unsigned long long)counters->errors,
        (unsigned long long)counters->injected);
}

static unsigned stats(struct origin *origin, char *body, size_t size)
{
    size_t used = (size_t)snprintf(body, size, "{\n  ");

    for (int i = 0; i < ORIGIN_PROTOCOLS && used < size; i++) {
        if (i > 0)
            used += (size_t)snprintf(body + used, size - used, ",\n  ");
        if (used < size)
            used += (size_t)port_stats(&origin->ports[i], body + used, size - used);
    }
    if (used < size)
        snprintf(body + used, size - used,
                 ",\n  \"files\": {\"bytes\": %llu, \"bytes_most\": %llu, "
                 "\"count\": %llu}\n}\n",
                 (unsigned long long)origin->files.used_bytes,
                 (unsigned long long)origin->files.memory_bytes,
                 (unsigned long long)origin->files.nodes_used);
    return 200;
}

/* Which protocols a change is for: a set of bits, 0 for a name that is none. */
static unsigned wanted_protocols(const char *query)
{
    char name[VALUE_BYTES];

    if (!query_value(query, "protocol", name))
        return (1U << ORIGIN_HTTP) | (1U << ORIGIN_NFS);
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        if (strcmp(name, origin_protocol_name((enum origin_protocol)i)) == 0)
            return 1U << i;
    }
    return 0;
}

/* 0 when the change was made for all of the protocols, or for none: then an error of which
 * `complaint` is due. */
static int change(struct origin *origin, unsigned protocols, enum origin_setting setting,
                  const char *text)
{
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        struct origin_settings trial = origin->ports[i].settings;

        if ((protocols & (1U << i)) &&
            (origin_setting_read(&trial, setting, text) != 0 || !origin_settings_agree(&trial)))
            return -1;
    }
    for (int i = 0; i < ORIGIN_PROTOCOLS; i++) {
        if (protocols & (1U << i))
            origin_change(&origin->ports[i], setting, text);
    }
    return 0;
}

/* The texts that a query has for a setting: "value", and the shorter forms' own names. */
struct form {
    const char *name;
    enum origin_setting setting;
};

static unsigned apply(struct origin *origin, enum origin_setting setting, const char *query,
                      char *body, size_t size)
{
    const struct form forms[] = {
        {"value", setting},
        {setting == ORIGIN_SETTING_SLOTS ? "n" : NULL, setting},
        {setting == ORIGIN_SETTING_SERVICE ? "mean" : NULL, setting},
        {setting == ORIGIN_SETTING_SERVICE ? "distribution" : NULL, ORIGIN_SETTING_DISTRIBUTION},
    };
    unsigned protocols = wanted_protocols(query);
    char text[VALUE_BYTES];
    bool any = false;

    if (protocols == 0)
        return complain(body, size, 400, "protocol", "http or nfs is");
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        if (!forms[i].name || !query_value(query, forms[i].name, text))
            continue;
        if (change(origin, protocols, forms[i].setting, text) != 0)
            return complain(body, size, 400, forms[i].name,
                            origin_setting_expected(forms[i].setting));
        any = true;
    }
    if (!any)
        return complain(body, size, 400, "value", origin_setting_expected(setting));
    return stats(origin, body, size);
}

unsigned origin_admin(struct origin *origin, bool change_wanted, const char *path,
                      const char *query, char *body, size_t body_size)
{
    if (strcmp(path, "stats") == 0)
        return change_wanted ? complain(body, body_size, 405, "stats", "GET is")
                             : stats(origin, body, body_size);
    enum origin_setting setting = origin_setting_of(path);

    if (setting == ORIGIN_SETTINGS)
        return complain(body, body_size, 404, "/_origin/", "stats or the name of a setting is");
    if (!change_wanted)
        return stats(origin, body, body_size);
    return apply(origin, setting, query, body, body_size);
}
