/* SPDX-License-Identifier: Apache-2.0 */
/* Memory streaming: every thread copies one half of its memory over the other, chunk by chunk. */
#include "loadgen/faults/streaming.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

#define CHUNK_BYTES (256U * 1024)
/* Of the memory that is available: more would measure the swap, or end a process. */
#define MOST_OF_AVAILABLE 0.75

struct streaming {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool active;
    atomic_bool ending;
    atomic_uint_fast64_t bytes;
    uint64_t thread_bytes;
    unsigned threads_count;
    struct streamer {
        struct streaming *streaming;
        pthread_t thread;
        uint8_t *memory;
    } streamers[];
};

static void *stream(void *argument)
{
    struct streamer *streamer = argument;
    struct streaming *streaming = streamer->streaming;
    uint64_t half = streaming->thread_bytes / 2;
    uint64_t at = 0;

    for (;;) {
        pthread_mutex_lock(&streaming->lock);
        while (!atomic_load(&streaming->active) && !atomic_load(&streaming->ending))
            pthread_cond_wait(&streaming->changed, &streaming->lock);
        pthread_mutex_unlock(&streaming->lock);
        if (atomic_load(&streaming->ending))
            return NULL;
        while (atomic_load(&streaming->active) && !atomic_load(&streaming->ending)) {
            uint64_t length = half - at < CHUNK_BYTES ? half - at : CHUNK_BYTES;

            memcpy(streamer->memory + half + at, streamer->memory + at, length);
            at = at + length >= half ? 0 : at + length;
            atomic_fetch_add(&streaming->bytes, 2 * length);
        }
    }
}

static uint64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kibibytes = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kibibytes * 1024;
}

static int start_thread(struct streaming *streaming, unsigned i, const struct fault_spec *spec)
{
    struct streamer *streamer = &streaming->streamers[i];
    pthread_attr_t attributes;
    int error;

    streamer->streaming = streaming;
    streamer->memory = mmap(NULL, spec->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (streamer->memory == MAP_FAILED)
        return -errno;
    /* Pages that were never written may all be the same page of zeros. */
    memset(streamer->memory, (int)i + 1, spec->bytes);
    pthread_attr_init(&attributes);
    if (spec->has_cpus)
        pthread_attr_setaffinity_np(&attributes, sizeof(spec->cpus), &spec->cpus);
    error = pthread_create(&streamer->thread, &attributes, stream, streamer);
    pthread_attr_destroy(&attributes);
    if (error) {
        munmap(streamer->memory, spec->bytes);
        return -error;
    }
    streaming->threads_count++;
    return 0;
}

struct streaming *streaming_create(const struct fault_spec *spec)
{
    uint64_t available = available_bytes();

    if ((double)spec->bytes * spec->threads > MOST_OF_AVAILABLE * (double)available) {
        fprintf(stderr,
                "spillload fault: memory: %u threads with %llu MiB each are more than three "
                "quarters of the %llu MiB available; give fewer threads= or bytes=\n",
                spec->threads, (unsigned long long)(spec->bytes >> 20),
                (unsigned long long)(available >> 20));
        return NULL;
    }
    struct streaming *streaming =
        memory_zeroed(1, sizeof(*streaming) + spec->threads * sizeof(streaming->streamers[0]));

    pthread_mutex_init(&streaming->lock, NULL);
    pthread_cond_init(&streaming->changed, NULL);
    streaming->thread_bytes = spec->bytes;
    for (unsigned i = 0; i < spec->threads; i++) {
        int error = start_thread(streaming, i, spec);

        if (error) {
            fprintf(stderr, "spillload fault: memory: thread %u can't be started: %s; %s\n", i + 1,
                    strerror(-error),
                    error == -EINVAL ? "are the processors of cpus= there?"
                                     : "give fewer threads= or bytes=");
            streaming_destroy(streaming);
            return NULL;
        }
    }
    return streaming;
}

static void change(struct streaming *streaming, atomic_bool *what, bool value)
{
    pthread_mutex_lock(&streaming->lock);
    atomic_store(what, value);
    pthread_cond_broadcast(&streaming->changed);
    pthread_mutex_unlock(&streaming->lock);
}

void streaming_begin(struct streaming *streaming)
{
    change(streaming, &streaming->active, true);
}

void streaming_end(struct streaming *streaming)
{
    change(streaming, &streaming->active, false);
}

uint64_t streaming_bytes(const struct streaming *streaming)
{
    return atomic_load(&streaming->bytes);
}

void streaming_destroy(struct streaming *streaming)
{
    if (!streaming)
        return;
    change(streaming, &streaming->ending, true);
    for (unsigned i = 0; i < streaming->threads_count; i++) {
        pthread_join(streaming->streamers[i].thread, NULL);
        munmap(streaming->streamers[i].memory, streaming->thread_bytes);
    }
    pthread_cond_destroy(&streaming->changed);
    pthread_mutex_destroy(&streaming->lock);
    free(streaming);
}
