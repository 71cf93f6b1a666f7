/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The knee of a curve, where more of x begins to bring little more of y: Kneedle (Satopaa,
 * Albrecht, Irwin, Raghavan, "Finding a 'kneedle' in a haystack", 2011) with sensitivity S = 1.
 *
 * Both axes are scaled to [0, 1]; d = y - x is the distance above the diagonal. The knee is where d
 * is largest, provided that d falls afterwards by more than S times the mean step of x: a straight
 * line has none, and neither has a curve that still rises at its end.
 *
 *   1 |        _______
 *   y |     .-'            knee: the largest distance above the diagonal
 *     |   /    . '
 *     | /  . '
 *   0 +---------------- x 1
 */
#ifndef LOADGEN_RESULTS_STATISTICS_KNEE_H
#define LOADGEN_RESULTS_STATISTICS_KNEE_H

#include <stddef.h>

#define KNEE_SENSITIVITY 1.0
#define KNEE_NONE        ((size_t)-1)

/* The place of the knee in a concave, rising curve, or KNEE_NONE. `x` rises strictly; fewer than
 * three points have none. */
size_t knee_find(const double *x, const double *y, size_t count);

#endif
