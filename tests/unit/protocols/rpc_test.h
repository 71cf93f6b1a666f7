/* SPDX-License-Identifier: Apache-2.0 */
/* What the RPC tests share: a seeded generator (the seed is printed, and taken from
 * SPILLWAY_TEST_SEED), copies in heap blocks of the exact size, so that AddressSanitizer sees every
 * over-read, and a builder of XDR that shares no code with what it tests. */
#ifndef SPILLWAY_TESTS_UNIT_PROTOCOLS_RPC_TEST_H
#define SPILLWAY_TESTS_UNIT_PROTOCOLS_RPC_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_random {
    uint64_t state;
};

static inline void test_random_init(struct test_random *random, const char *test)
{
    const char *given = getenv("SPILLWAY_TEST_SEED");

    random->state = given ? strtoull(given, NULL, 0) : 20260101;
    printf("%s: SPILLWAY_TEST_SEED=%llu\n", test, (unsigned long long)random->state);
}

/* splitmix64 */
static inline uint64_t test_random_next(struct test_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint32_t test_random_below(struct test_random *random, uint32_t bound)
{
    return (uint32_t)(test_random_next(random) % bound);
}

/* A heap block of exactly `len` bytes (1 when len is 0, poisoned content never read). free() it. */
static inline uint8_t *test_exact_copy(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);

    if (!copy)
        abort();
    if (len)
        memcpy(copy, data, len);
    return copy;
}

#define BUILD_MAX_BYTES 4096

struct build {
    uint8_t bytes[BUILD_MAX_BYTES];
    size_t len;
};

static inline void build_raw(struct build *b, const void *data, size_t len)
{
    if (b->len + len > sizeof b->bytes)
        abort();
    if (len)
        memcpy(b->bytes + b->len, data, len);
    b->len += len;
}

static inline void build_word(struct build *b, uint32_t v)
{
    uint8_t be[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

    build_raw(b, be, 4);
}

static inline void build_hyper(struct build *b, uint64_t v)
{
    build_word(b, (uint32_t)(v >> 32));
    build_word(b, (uint32_t)v);
}

static inline void build_zeros(struct build *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        build_raw(b, "", 1);
}

static inline void build_opaque(struct build *b, const void *data, size_t len)
{
    build_word(b, (uint32_t)len);
    build_raw(b, data, len);
    while (b->len % 4)
        build_raw(b, "", 1);
}

static inline void build_string(struct build *b, const char *s)
{
    build_opaque(b, s, strlen(s));
}

static inline uint32_t test_word_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#endif
