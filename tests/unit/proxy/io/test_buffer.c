/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and buffers: what comes out is what went in, and a warm cache hands out what it has. */
#include "proxy/io/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void blocks_are_as_large_as_they_say(void **state)
{
    static const size_t sizes[] = {0, 1, 511, 512, 513, 4096, 4097, 1 << 20, (1 << 20) + 1};
    struct buffer_cache cache = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t capacity = 0;
        void *block = block_alloc(&cache, sizes[i], &capacity);
        assert_true(capacity >= sizes[i]);
        memset(block, 0x5a, capacity);
        block_free(&cache, block, capacity);
    }
    buffer_cache_fini(&cache);
}

static void a_freed_block_is_handed_out_again(void **state)
{
    struct buffer_cache cache = {0};
    size_t capacity;

    (void)state;
    void *first = block_alloc(&cache, 1000, &capacity);
    block_free(&cache, first, capacity);
    /* By the size asked for, as well as by the real one. */
    assert_ptr_equal(block_alloc(&cache, 700, &capacity), first);
    block_free(&cache, first, 1000);
    assert_ptr_equal(block_alloc(&cache, 1024, &capacity), first);
    block_free(&cache, first, capacity);
    void *other = block_alloc(&cache, 100, &capacity);
    assert_ptr_not_equal(other, first);
    block_free(&cache, other, capacity);
    block_free(&cache, NULL, 0);
    buffer_cache_fini(&cache);
}

static void a_cache_keeps_a_bounded_amount(void **state)
{
    enum { BLOCKS = 12 };
    struct buffer_cache cache = {0};
    void *blocks[BLOCKS];
    size_t capacity = 0;

    (void)state;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_alloc(&cache, 1 << 20, &capacity);
    for (int i = 0; i < BLOCKS; i++)
        block_free(&cache, blocks[i], capacity);
    assert_int_equal(cache.count[BUFFER_CLASSES - 1], BUFFER_CACHE_BYTES >> 20);
    buffer_cache_fini(&cache);
    assert_int_equal(cache.count[BUFFER_CLASSES - 1], 0);
}

static void an_empty_buffer_holds_no_memory(void **state)
{
    struct buffer_cache cache = {0};
    struct buffer buffer = {0};

    (void)state;
    buffer_append(&cache, &buffer, "", 0);
    assert_null(buffer.data);
    buffer_append(&cache, &buffer, "abc", 3);
    assert_int_equal(buffer_length(&buffer), 3);
    buffer_consume(&cache, &buffer, 2);
    assert_memory_equal(buffer_bytes(&buffer), "c", 1);
    buffer_consume(&cache, &buffer, 1);
    assert_int_equal(buffer_length(&buffer), 0);
    assert_null(buffer.data);
    buffer_append(&cache, &buffer, "xyz", 3);
    buffer_clear(&cache, &buffer);
    assert_null(buffer.data);
    buffer_cache_fini(&cache);
}

/* Appending pieces of every length while taking others from the front, against plain counters. */
static void bytes_come_out_in_order(void **state)
{
    struct buffer_cache cache = {0};
    struct buffer buffer = {0};
    size_t in = 0;
    size_t out = 0;

    (void)state;
    for (unsigned i = 1; i < 3000; i++) {
        uint8_t piece[1500];
        size_t length = (i * 37) % sizeof(piece);
        for (size_t k = 0; k < length; k++)
            piece[k] = (uint8_t)((in + k) % 251);
        buffer_append(&cache, &buffer, piece, length);
        in += length;
        assert_int_equal(buffer_length(&buffer), in - out);
        size_t take = (i * 53) % 1700;
        if (take > buffer_length(&buffer))
            take = buffer_length(&buffer);
        for (size_t k = 0; k < take; k++)
            assert_int_equal(buffer_bytes(&buffer)[k], (out + k) % 251);
        if (take > 0)
            buffer_consume(&cache, &buffer, take);
        out += take;
    }
    buffer_clear(&cache, &buffer);
    buffer_cache_fini(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_as_large_as_they_say),
        cmocka_unit_test(a_freed_block_is_handed_out_again),
        cmocka_unit_test(a_cache_keeps_a_bounded_amount),
        cmocka_unit_test(an_empty_buffer_holds_no_memory),
        cmocka_unit_test(bytes_come_out_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
