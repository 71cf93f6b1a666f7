/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that a seed repeats exactly, on every machine.
 *
 * The generator is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2018), its state filled by splitmix64 as the authors advise. One generator per
 * consumer: what one flow draws never shifts what another one draws.
 */
#ifndef LOADGEN_BASE_RNG_H
#define LOADGEN_BASE_RNG_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t state[4];
};

/* Any seed will do, zero included. `stream` tells apart the generators made from one seed. */
static inline void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed ^ (stream * 0xd1342543de82ef95ULL);

    for (int i = 0; i < 4; i++) {
        uint64_t z = (x += 0x9e3779b97f4a7c15ULL);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        rng->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t rng_rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rng_rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotate_left(s[3], 45);
    return result;
}

/* Uniform in [0, 1), 53 bits. */
static inline double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

/* Uniform in [0, bound); 0 for a bound of 0. The bias is below bound / 2^64. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)rng_next(rng) * bound) >> 64);
}

/* Exponential with the given mean; the argument of the logarithm is in (0, 1], so the result is
 * finite. */
static inline double rng_exponential(struct rng *rng, double mean)
{
    return -mean * log(1.0 - rng_unit(rng));
}

#endif
