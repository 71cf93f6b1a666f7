/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owned bytes: what has to outlive a loop turn. Output that the kernel did not take, the beginning
 * of a message whose rest has not come, calls that wait for their turn.
 *
 * Buffers come from per-loop caches in powers of two, so that a warm loop allocates nothing. An
 * empty buffer holds no memory: an idle connection costs its structure alone. Only the thread of
 * the loop may use its cache. Out of memory ends the process (memory.h).
 */
#ifndef SPILLWAY_IO_BUFFER_H
#define SPILLWAY_IO_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#define BUFFER_CLASS_MIN_SHIFT 9  /* 512 B */
#define BUFFER_CLASS_MAX_SHIFT 20 /* 1 MiB; larger ones are not cached */
#define BUFFER_CLASSES         (BUFFER_CLASS_MAX_SHIFT - BUFFER_CLASS_MIN_SHIFT + 1)
#define BUFFER_CACHE_BYTES     (UINT32_C(4) << 20) /* kept per class at the most */

struct buffer_cache {
    void *free[BUFFER_CLASSES];
    uint32_t count[BUFFER_CLASSES];
};

struct buffer {
    uint8_t *data;
    size_t start; /* first byte in use */
    size_t end;   /* one past the last byte in use */
    size_t capacity;
};

/* A block of at least `size` bytes; *capacity receives its real size, which block_free() wants
 * back. */
void *block_alloc(struct buffer_cache *cache, size_t size, size_t *capacity);
void block_free(struct buffer_cache *cache, void *block, size_t capacity);
void buffer_cache_fini(struct buffer_cache *cache);

static inline size_t buffer_length(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline uint8_t *buffer_bytes(struct buffer *buffer)
{
    return buffer->data + buffer->start;
}

void buffer_append(struct buffer_cache *cache, struct buffer *buffer, const void *bytes,
                   size_t length);

/* Drops bytes from the front; the memory goes back to the cache when nothing is left. */
void buffer_consume(struct buffer_cache *cache, struct buffer *buffer, size_t length);
void buffer_clear(struct buffer_cache *cache, struct buffer *buffer);

#endif
