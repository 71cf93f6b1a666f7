/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prime factors of 64-bit numbers: work that costs real processor time, different for each number,
 * with a result that can be checked.
 *
 *   n ─► trial division by primes below 2^10 ─► what is left, again and again:
 *        1 or prime (Miller-Rabin, bases 2 to 37: exact below 2^64)   done
 *        a square                                                      its root, twice
 *        Pollard's p - 1 with B1 = 1000                                a factor, if p - 1 is smooth
 *        SQUFOF over 16 multipliers                                    a factor, nearly always
 *        Pollard's rho, for what is left (cubes)                       a factor
 *
 * SQUFOF: Shanks' square forms factorisation as analysed by Gower and Wagstaff, "Square form
 * factorization", Mathematics of Computation 77 (2008). k * n needs up to 75 bits: 128-bit
 * arithmetic.
 */
#ifndef LOADGEN_ORIGIN_SERVICE_FACTOR_H
#define LOADGEN_ORIGIN_SERVICE_FACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2^63 has the most. */
#define FACTOR_MAX 64

/* The prime factors of n in ascending order, repeated as often as they divide it; returns how many.
 * None of 0 and 1. */
size_t factor(uint64_t n, uint64_t out[FACTOR_MAX]);

bool factor_is_prime(uint64_t n);

/* A proper factor of a composite, odd n that is no square, by SQUFOF alone; 0 when it found none.
 */
uint64_t factor_square_forms(uint64_t n);

/* A proper factor of a composite n by p - 1 alone; 0 when it found none. */
uint64_t factor_smooth(uint64_t n);

#endif
