/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: see access_log.h. */
#include "proxy/control/access_log.h"

#include "proxy/control/log.h"
#include "proxy/control/output.h"
#include "proxy/io/memory.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES    (UINT32_C(64) << 10)
#define LINE_MAX_BYTES  (UINT32_C(40) << 10) /* a line with the longest texts, all escaped */
#define TARGET_BYTES    (UINT32_C(4) << 10)  /* of a target that are logged */
#define OPERATION_BYTES UINT32_C(64)         /* of an operation that are logged */
#define NAME_BYTES      256                  /* of the other texts */
#define FLUSH_AFTER_NS  UINT64_C(1000000000)

struct access_buffer {
    size_t length;
    uint64_t lines;
    uint64_t oldest_ns; /* of the lines that wait */
    char text[BUFFER_BYTES];
};

static struct output target = OUTPUT_INITIALISER(-1);
static atomic_int line_format = CONFIG_LOG_TEXT;

int access_log_open(const struct config_log *config)
{
    int error = output_open(&target, &config->access);

    if (error == 0)
        atomic_store(&line_format, (int)config->format);
    return error;
}

int access_log_reopen(void)
{
    return output_reopen(&target);
}

void access_log_close(void)
{
    output_close(&target, -1);
}

bool access_log_enabled(void)
{
    return atomic_load_explicit(&target.open, memory_order_relaxed);
}

uint64_t access_log_dropped(void)
{
    return atomic_load_explicit(&target.dropped, memory_order_relaxed);
}

struct access_buffer *access_buffer_create(void)
{
    return memory_zalloc(sizeof(struct access_buffer), "an access log buffer");
}

void access_buffer_destroy(struct access_buffer *buffer)
{
    if (buffer == NULL)
        return;
    access_log_flush(buffer, 0, true);
    free(buffer);
}

static void format_client(const struct sockaddr *client, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    struct line line = {text, 0, size};

    if (client == NULL) {
        line_add(&line, "-");
    } else if (client->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)client;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        line_add(&line, "%s:%u", host, ntohs(v4->sin_port));
    } else if (client->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)client;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        line_add(&line, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        line_add(&line, "unix");
    }
}

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

static unsigned long long microseconds(uint64_t ns)
{
    return (unsigned long long)(ns / 1000);
}

static size_t cut(size_t length, size_t limit)
{
    return length < limit ? length : limit;
}

/* time client listener pool/flow server "protocol operation target" status in out wait service
 * total end */
static void format_text(struct line *line, const struct access_record *record, const char *client)
{
    char when[40];

    output_timestamp(when, sizeof(when));
    line_add(line, "%s %s %.256s %.256s/%.256s %.256s \"%s ", when, client,
             or_dash(record->listener), or_dash(record->pool), or_dash(record->flow),
             or_dash(record->server), or_dash(record->protocol));
    line_add_escaped(line, record->operation, cut(record->operation_length, OPERATION_BYTES),
                     false);
    if (record->target != NULL) {
        line_add(line, " ");
        line_add_escaped(line, record->target, cut(record->target_length, TARGET_BYTES), false);
    }
    line_add(line, "\" %u in=%llu out=%llu wait=%lluus service=%lluus total=%lluus %s\n",
             record->status, (unsigned long long)record->bytes_in,
             (unsigned long long)record->bytes_out, microseconds(record->wait_ns),
             microseconds(record->service_ns), microseconds(record->total_ns),
             or_dash(record->end));
}

static void format_json(struct line *line, const struct access_record *record, const char *client)
{
    char when[40];
    const struct {
        const char *name;
        const char *value;
    } texts[] = {{"listener", record->listener}, {"pool", record->pool},
                 {"flow", record->flow},         {"server", record->server},
                 {"protocol", record->protocol}, {"end", record->end}};

    output_timestamp(when, sizeof(when));
    line_add(line, "{\"time\":\"%s\",\"client\":\"%s\"", when, client);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *value = or_dash(texts[i].value);
        line_add(line, ",\"%s\":\"", texts[i].name);
        line_add_escaped(line, value, strnlen(value, NAME_BYTES), true);
        line_add(line, "\"");
    }
    line_add(line, ",\"operation\":\"");
    line_add_escaped(line, record->operation, cut(record->operation_length, OPERATION_BYTES), true);
    if (record->target != NULL) {
        line_add(line, "\",\"target\":\"");
        line_add_escaped(line, record->target, cut(record->target_length, TARGET_BYTES), true);
    }
    line_add(line,
             "\",\"status\":%u,\"bytes_in\":%llu,\"bytes_out\":%llu,\"wait_us\":%llu,\"service_"
             "us\":%llu,\"total_us\":%llu}\n",
             record->status, (unsigned long long)record->bytes_in,
             (unsigned long long)record->bytes_out, microseconds(record->wait_ns),
             microseconds(record->service_ns), microseconds(record->total_ns));
}

void access_log_write(struct access_buffer *buffer, const struct access_record *record,
                      uint64_t now_ns)
{
    char client[80];

    if (!access_log_enabled())
        return;
    if (BUFFER_BYTES - buffer->length < LINE_MAX_BYTES)
        access_log_flush(buffer, now_ns, true);
    if (buffer->lines == 0)
        buffer->oldest_ns = now_ns;
    struct line line = {buffer->text, buffer->length, BUFFER_BYTES};
    format_client(record->client, client, sizeof(client));
    if (atomic_load_explicit(&line_format, memory_order_relaxed) == CONFIG_LOG_JSON)
        format_json(&line, record, client);
    else
        format_text(&line, record, client);
    buffer->length = line.length;
    buffer->lines++;
}

static void say_dropped(void)
{
    static atomic_uint_fast64_t dropped_said;
    uint64_t dropped = atomic_load_explicit(&target.dropped, memory_order_relaxed);
    uint64_t said = atomic_load_explicit(&dropped_said, memory_order_relaxed);

    if (dropped != said && atomic_compare_exchange_strong(&dropped_said, &said, dropped))
        log_warning("%llu access log lines could not be written",
                    (unsigned long long)(dropped - said));
}

void access_log_flush(struct access_buffer *buffer, uint64_t now_ns, bool everything)
{
    if (buffer->lines == 0 || (!everything && now_ns - buffer->oldest_ns < FLUSH_AFTER_NS))
        return;
    if (output_write(&target, buffer->text, buffer->length))
        say_dropped();
    buffer->length = 0;
    buffer->lines = 0;
}
