/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin's NFS side: connections, records, and the service's slots in front of the operations
 * (which are in origin_nfs3.c).
 *
 * Calls of one connection are in the service together, up to MAX_JOBS of them, and are answered in
 * the order they get done. An operation is carried out when its call arrives, its reply is held
 * back until its job is done. A connection that closes while jobs are out is `gone`: the jobs keep
 * their slots to the end, the last one frees the connection.
 */
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/origin/nfs/origin_nfs3.h"
#include "loadgen/origin/origin.h"
#include "protocols/rpc/rpc_record.h"

/* Calls of one connection in the service; more wait in its socket. */
#define MAX_JOBS 4096
/* READ data up to this size is copied behind the reply's head, which makes one piece to send. */
#define COPY_BYTES (16 * 1024)

struct origin_nfs_job {
    struct service_job job;
    struct origin_nfs_connection *connection;
    struct origin_nfs_job *next_free;
    struct origin_nfs_job *next_made;
    struct origin_nfs3_reply reply;
    uint8_t *copy; /* of data that does not stay */
    uint8_t buffer[ORIGIN_NFS3_REPLY_BYTES];
};

struct origin_nfs_connection {
    struct stream stream;
    struct origin_port *port;
    struct origin_nfs_connection *next_free;
    struct origin_nfs_connection *next_made;
    uint32_t jobs;
    bool gone;
    struct rpc_record_decoder decoder;
    /* A record that came in pieces. */
    uint8_t *record;
    size_t record_bytes;
    size_t record_capacity;
};

static struct origin_nfs_connection *connection_of(struct stream *stream)
{
    return (void *)((char *)stream - offsetof(struct origin_nfs_connection, stream));
}

static void release(struct origin_nfs_connection *connection)
{
    struct origin *origin = connection->port->origin;

    stream_fini(&connection->stream);
    free(connection->record);
    connection->record = NULL;
    connection->next_free = origin->nfs_free;
    origin->nfs_free = connection;
}

static void release_if_over(struct origin_nfs_connection *connection)
{
    if (connection->gone && connection->jobs == 0)
        release(connection);
}

/* ---------------------------------------------------------------- replies */

static void put_data(struct stream *stream, const struct origin_nfs3_reply *reply)
{
    static const uint8_t zeros[4];
    size_t padding = (size_t)(rpc_padded(reply->data_bytes) - reply->data_bytes);

    if (reply->data_bytes <= COPY_BYTES || !reply->stays)
        stream_put(stream, reply->data, reply->data_bytes);
    else
        stream_put_repeated(stream, reply->data, reply->data_bytes, reply->data_bytes);
    stream_put(stream, zeros, padding);
}

static struct origin_nfs_job *job_take(struct origin_nfs_connection *connection)
{
    struct origin *origin = connection->port->origin;
    struct origin_nfs_job *job = origin->nfs_jobs_free;

    if (job) {
        origin->nfs_jobs_free = job->next_free;
    } else {
        job = memory_zeroed(1, sizeof(*job));
        job->next_made = origin->nfs_jobs_made;
        origin->nfs_jobs_made = job;
    }
    job->connection = connection;
    connection->jobs++;
    return job;
}

static void job_give_back(struct origin_nfs_connection *connection, struct origin_nfs_job *job)
{
    struct origin *origin = connection->port->origin;

    free(job->copy);
    job->copy = NULL;
    connection->jobs--;
    job->next_free = origin->nfs_jobs_free;
    origin->nfs_jobs_free = job;
}

/* Sends the job's reply, if there is still someone to send it to, and gives the job back. */
static void answer(struct origin_nfs_connection *connection, struct origin_nfs_job *job)
{
    bool was_full = connection->jobs == MAX_JOBS;

    if (!connection->gone) {
        stream_put(&connection->stream, job->buffer, job->reply.head_bytes);
        if (job->reply.data_bytes)
            put_data(&connection->stream, &job->reply);
        if (was_full)
            stream_resume(&connection->stream);
    }
    job_give_back(connection, job);
    release_if_over(connection);
}

/* A reply that waits for its job keeps what would not stay. */
static void keep_reply(struct origin_nfs_job *job, const struct origin_nfs3_reply *reply)
{
    job->reply = *reply;
    if (reply->data_bytes == 0 || reply->stays)
        return;
    job->copy = memory_grow(NULL, reply->data_bytes);
    memcpy(job->copy, reply->data, reply->data_bytes);
    job->reply.data = job->copy;
}

static void job_done(struct service_job *service_job)
{
    struct origin_nfs_job *job =
        (void *)((char *)service_job - offsetof(struct origin_nfs_job, job));

    answer(job->connection, job);
}

/* ---------------------------------------------------------------- calls */

/* Answers one record, or puts it into the service. False: it is no call, the connection is closed.
 */
static bool take_record(struct origin_nfs_connection *connection, const uint8_t *payload,
                        size_t length)
{
    struct origin_port *port = connection->port;
    struct stream *stream = &connection->stream;
    struct origin_nfs3_reply reply;
    struct origin_nfs_job *job = origin_is_immediate(port) ? NULL : job_take(connection);
    uint8_t *buffer = job ? job->buffer : stream_reserve(stream, ORIGIN_NFS3_REPLY_BYTES);

    bool is_call = origin_nfs3_execute(port, payload, length, buffer, &reply);

    if (!is_call || reply.reset) {
        if (job)
            job_give_back(connection, job);
        port->counters.errors += !is_call;
        if (is_call)
            origin_reset(stream);
        else
            stream_close(stream, 0);
        return false;
    }
    if (!job) {
        stream_commit(stream, reply.head_bytes);
        if (reply.data_bytes)
            put_data(stream, &reply);
        if (reply.served) {
            port->service.counters.submitted++;
            port->service.counters.completed++;
        }
        return true;
    }
    keep_reply(job, &reply);
    job->job = (struct service_job){.done = job_done};
    if (!reply.served || origin_submit(port, &job->job))
        answer(connection, job);
    return true;
}

static void collect(struct origin_nfs_connection *connection, const struct rpc_record_event *event)
{
    size_t wanted = connection->record_bytes + event->len;

    if (event->known_bytes != RPC_RECORD_UNKNOWN && event->known_bytes > wanted)
        wanted = (size_t)event->known_bytes;
    if (wanted > connection->record_capacity) {
        size_t doubled = 2 * connection->record_capacity;

        connection->record_capacity = wanted > doubled ? wanted : doubled;
        connection->record = memory_grow(connection->record, connection->record_capacity);
    }
    if (event->len)
        memcpy(connection->record + connection->record_bytes, event->data, event->len);
    connection->record_bytes += event->len;
}

/* False: stop, the connection is closed. */
static bool take_event(struct origin_nfs_connection *connection,
                       const struct rpc_record_event *event)
{
    switch (event->type) {
    case RPC_RECORD_WHOLE:
        return take_record(connection, event->data + RPC_RECORD_MARK_BYTES,
                           event->len - RPC_RECORD_MARK_BYTES);
    case RPC_RECORD_BEGIN:
        connection->record_bytes = 0;
        return true;
    case RPC_RECORD_DATA:
        collect(connection, event);
        return true;
    case RPC_RECORD_END:
        return take_record(connection, connection->record, connection->record_bytes);
    case RPC_RECORD_ERROR:
        connection->port->counters.errors++;
        stream_close(&connection->stream, 0);
        return false;
    case RPC_RECORD_MORE:
    default:
        return true;
    }
}

static size_t nfs_data(struct stream *stream, const uint8_t *data, size_t length)
{
    struct origin_nfs_connection *connection = connection_of(stream);
    struct rpc_record_event event = {.type = RPC_RECORD_BEGIN};
    size_t used = 0;

    while (event.type != RPC_RECORD_MORE && connection->jobs < MAX_JOBS &&
           !stream_output_full(stream)) {
        used += rpc_record_next(&connection->decoder, data + used, length - used, &event);
        if (!take_event(connection, &event))
            break;
    }
    return used;
}

static void nfs_drained(struct stream *stream)
{
    stream_resume(stream);
}

static void nfs_closed(struct stream *stream, int error)
{
    struct origin_nfs_connection *connection = connection_of(stream);

    (void)error;
    connection->gone = true;
    release_if_over(connection);
}

static const struct stream_handler nfs_handler = {
    .data = nfs_data,
    .drained = nfs_drained,
    .closed = nfs_closed,
};

void origin_nfs_accept(struct origin_port *port, int fd)
{
    struct origin *origin = port->origin;
    struct origin_nfs_connection *connection = origin->nfs_free;

    if (connection) {
        origin->nfs_free = connection->next_free;
    } else {
        connection = memory_zeroed(1, sizeof(*connection));
        connection->next_made = origin->nfs_made;
        origin->nfs_made = connection;
    }
    *connection = (struct origin_nfs_connection){.port = port, .next_made = connection->next_made};
    rpc_record_init(&connection->decoder, NULL);
    if (stream_open(&connection->stream, origin->loop, fd, &nfs_handler) != 0)
        release(connection);
}

void origin_nfs_fini(struct origin *origin)
{
    while (origin->nfs_made) {
        struct origin_nfs_connection *connection = origin->nfs_made;

        origin->nfs_made = connection->next_made;
        stream_fini(&connection->stream);
        free(connection->record);
        free(connection);
    }
    while (origin->nfs_jobs_made) {
        struct origin_nfs_job *job = origin->nfs_jobs_made;

        origin->nfs_jobs_made = job->next_made;
        free(job->copy);
        free(job);
    }
}
