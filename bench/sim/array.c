/* SPDX-License-Identifier: Apache-2.0 */
/* Disks with a FIFO each; the model is in the header. */
#include "bench/sim/array.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

/* Mean of sqrt(|x - y|) for x and y uniform in [0, 1]. */
#define MEAN_SEEK (8.0 / 15.0)

int array_spread_parse(const char *name, enum array_spread *out)
{
    if (strcmp(name, "random") == 0)
        *out = ARRAY_SPREAD_RANDOM;
    else if (strcmp(name, "shortest") == 0)
        *out = ARRAY_SPREAD_SHORTEST;
    else
        return -EINVAL;
    return 0;
}

/* ---------------------------------------------------------------- disks */

static uint64_t service_ns(const struct array *array, const struct array_job *job)
{
    double share = array->config.seek_share;
    uint32_t last = job->stream->last[job->disk];

    if (share == 0)
        return job->draw_ns;
    double distance = fabs((double)job->block - (double)last) / ARRAY_DISK_BLOCKS;

    return (uint64_t)((double)job->draw_ns * (1.0 - share + share * sqrt(distance) / MEAN_SEEK));
}

static void start(struct array_disk *disk)
{
    struct array_job *job = disk->head;
    struct events *events = disk->array->events;
    uint64_t time_ns = service_ns(disk->array, job);

    job->stream->last[job->disk] = job->block;
    disk->busy_ns += time_ns;
    events_at(events, &disk->done, events->now_ns + time_ns);
}

static void job_done(struct event *event)
{
    struct array_disk *disk = (void *)((char *)event - offsetof(struct array_disk, done));
    struct array_job *job = disk->head;

    disk->head = job->next;
    disk->jobs--;
    if (disk->head)
        start(disk);
    disk->array->done(disk->array->owner, job);
}

static uint32_t shortest(struct array *array)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < array->config.disks; i++) {
        if (array->disks[i].jobs < array->disks[best].jobs)
            best = i;
    }
    return best;
}

void array_submit(struct array *array, struct array_job *job)
{
    if (array->config.spread == ARRAY_SPREAD_SHORTEST && !job->stream->sequential)
        job->disk = shortest(array);
    struct array_disk *disk = &array->disks[job->disk];

    job->next = NULL;
    disk->jobs++;
    if (disk->head) {
        disk->tail->next = job;
        disk->tail = job;
        return;
    }
    disk->head = job;
    disk->tail = job;
    start(disk);
}

/* ---------------------------------------------------------------- jobs and streams */

void array_job_init(struct array *array, struct array_job *job, struct array_stream *stream,
                    uint64_t units)
{
    uint32_t disks = array->config.disks;

    job->stream = stream;
    job->draw_ns = units * distribution_draw(&array->config.service, &stream->rng);
    if (stream->sequential) {
        job->disk = (uint32_t)(stream->next_block % disks);
        job->block = (uint32_t)(stream->next_block / disks % ARRAY_DISK_BLOCKS);
        stream->next_block++;
        return;
    }
    job->disk = (uint32_t)rng_below(&stream->rng, disks);
    job->block = (uint32_t)rng_below(&stream->rng, ARRAY_DISK_BLOCKS);
}

void array_stream_init(struct array_stream *stream, const struct array *array, bool sequential,
                       uint64_t seed, uint64_t number)
{
    *stream = (struct array_stream){.sequential = sequential};
    rng_init(&stream->rng, seed, number);
    stream->last = memory_zeroed(array->config.disks, sizeof(*stream->last));
}

void array_stream_fini(struct array_stream *stream)
{
    free(stream->last);
    stream->last = NULL;
}

/* ---------------------------------------------------------------- the array */

void array_init(struct array *array, const struct array_config *config, struct events *events,
                void (*done)(void *owner, struct array_job *job), void *owner)
{
    *array = (struct array){.config = *config, .events = events, .done = done, .owner = owner};
    array->disks = memory_zeroed(config->disks, sizeof(*array->disks));
    for (uint32_t i = 0; i < config->disks; i++) {
        array->disks[i].array = array;
        array->disks[i].done.fire = job_done;
    }
}

void array_fini(struct array *array)
{
    free(array->disks);
    array->disks = NULL;
}

double array_utilisation(const struct array *array)
{
    uint64_t now_ns = array->events->now_ns;
    double busy_ns = 0;

    for (uint32_t i = 0; i < array->config.disks; i++) {
        const struct array_disk *disk = &array->disks[i];

        busy_ns += (double)disk->busy_ns;
        /* A job is counted whole when it starts; what lies ahead is not yet busy time. */
        if (event_armed(&disk->done))
            busy_ns -= (double)(event_time_ns(&disk->done) - now_ns);
    }
    return now_ns ? busy_ns / (double)now_ns / array->config.disks : 0;
}
