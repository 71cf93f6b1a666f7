/* SPDX-License-Identifier: Apache-2.0 */
/* GET /factor?n=N: factorisation in a slot, as an example of work that keeps a processor busy. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loadgen/base/memory.h"
#include "loadgen/origin/http/origin_http.h"

/* 63 factors at most, 20 digits at most in all but small ones. */
#define TEXT_BYTES 1024
#define DIGITS_MAX 20

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* In a worker's thread. */
static void carry_out(struct service_job *job)
{
    const struct origin_http_connection *connection =
        (void *)((char *)job - offsetof(struct origin_http_connection, job));
    struct origin_http_factor *work = connection->factor;
    uint64_t start_ns = thread_cpu_ns();

    work->count = factor(work->n, work->factors);
    work->cpu_ns = thread_cpu_ns() - start_ns;
}

static bool read_number(struct http1_slice query, uint64_t *out)
{
    uint64_t n = 0;

    if (query.len < 3 || query.len > 2 + DIGITS_MAX || memcmp(query.ptr, "n=", 2) != 0)
        return false;
    for (size_t i = 2; i < query.len; i++) {
        unsigned digit = (unsigned)(query.ptr[i] - '0');

        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *out = n;
    return n > 0;
}

void origin_http_take_factor(struct origin_http_connection *connection, struct http1_slice query)
{
    uint64_t n;

    if (read_number(query, &n)) {
        connection->factor = memory_zeroed(1, sizeof(*connection->factor));
        connection->factor->n = n;
        connection->job.work = carry_out;
        return;
    }
    connection->status = 400;
    connection->text = memory_string(
        "{\"error\": \"/factor?n=N: a number from 1 to 18446744073709551615 expected\"}\n");
    connection->reply_bytes = strlen(connection->text);
}

void origin_http_put_factors(struct origin_http_connection *connection)
{
    const struct origin_http_factor *work = connection->factor;
    char *text = memory_zeroed(1, TEXT_BYTES);
    /* Numbers as strings: many readers of JSON keep 53 bits only. */
    size_t used =
        (size_t)snprintf(text, TEXT_BYTES, "{\"n\": \"%" PRIu64 "\", \"factors\": [", work->n);

    for (size_t i = 0; i < work->count; i++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s\"%" PRIu64 "\"", i ? ", " : "",
                                 work->factors[i]);
    used +=
        (size_t)snprintf(text + used, TEXT_BYTES - used, "], \"prime\": %s, \"cpu_us\": %.1f}\n",
                         work->count == 1 ? "true" : "false", (double)work->cpu_ns / 1e3);
    connection->text = text;
    connection->reply_bytes = used;
}
