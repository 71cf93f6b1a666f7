/* SPDX-License-Identifier: Apache-2.0 */
/* Owned bytes from per-loop caches: see buffer.h. */
#include "proxy/io/buffer.h"

#include "proxy/io/memory.h"

#include <stdlib.h>
#include <string.h>

struct free_block {
    struct free_block *next;
};

static unsigned class_shift(size_t size)
{
    if (size <= (size_t)1 << BUFFER_CLASS_MIN_SHIFT)
        return BUFFER_CLASS_MIN_SHIFT;
    return 64 - (unsigned)__builtin_clzll(size - 1);
}

void *block_alloc(struct buffer_cache *cache, size_t size, size_t *capacity)
{
    unsigned shift = class_shift(size);

    *capacity = (size_t)1 << shift;
    if (shift <= BUFFER_CLASS_MAX_SHIFT) {
        unsigned class = shift - BUFFER_CLASS_MIN_SHIFT;
        struct free_block *block = cache->free[class];
        if (block != NULL) {
            cache->free[class] = block->next;
            cache->count[class]--;
            return block;
        }
    }
    return memory_alloc(*capacity, "a buffer");
}

void block_free(struct buffer_cache *cache, void *block, size_t capacity)
{
    if (block == NULL)
        return;
    unsigned shift = class_shift(capacity);
    if (shift <= BUFFER_CLASS_MAX_SHIFT) {
        unsigned class = shift - BUFFER_CLASS_MIN_SHIFT;
        if (((uint64_t)cache->count[class] + 1) << shift <= BUFFER_CACHE_BYTES) {
            struct free_block *head = block;
            head->next = cache->free[class];
            cache->free[class] = head;
            cache->count[class]++;
            return;
        }
    }
    free(block);
}

void buffer_cache_fini(struct buffer_cache *cache)
{
    for (unsigned class = 0; class < BUFFER_CLASSES; class ++) {
        struct free_block *block = cache->free[class];
        while (block != NULL) {
            struct free_block *next = block->next;
            free(block);
            block = next;
        }
        cache->free[class] = NULL;
        cache->count[class] = 0;
    }
}

void buffer_append(struct buffer_cache *cache, struct buffer *buffer, const void *bytes,
                   size_t length)
{
    size_t held = buffer_length(buffer);

    if (length == 0)
        return;
    if (buffer->capacity - buffer->end < length) {
        if (buffer->capacity >= held + length && buffer->start >= buffer->capacity / 2) {
            memmove(buffer->data, buffer_bytes(buffer), held);
        } else {
            size_t capacity;
            uint8_t *data = block_alloc(cache, held + length, &capacity);
            if (held > 0)
                memcpy(data, buffer_bytes(buffer), held);
            block_free(cache, buffer->data, buffer->capacity);
            buffer->data = data;
            buffer->capacity = capacity;
        }
        buffer->start = 0;
        buffer->end = held;
    }
    memcpy(buffer->data + buffer->end, bytes, length);
    buffer->end += length;
}

void buffer_consume(struct buffer_cache *cache, struct buffer *buffer, size_t length)
{
    buffer->start += length;
    if (buffer->start >= buffer->end)
        buffer_clear(cache, buffer);
}

void buffer_clear(struct buffer_cache *cache, struct buffer *buffer)
{
    block_free(cache, buffer->data, buffer->capacity);
    *buffer = (struct buffer){0};
}
