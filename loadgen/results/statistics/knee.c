/* SPDX-License-Identifier: Apache-2.0 */
/* Kneedle. */
#include "loadgen/results/statistics/knee.h"

#include <math.h>

size_t knee_find(const double *x, const double *y, size_t count)
{
    size_t knee = 0;
    double largest = -INFINITY;
    double lowest = INFINITY;
    double highest = -INFINITY;

    if (count < 3)
        return KNEE_NONE;
    for (size_t i = 0; i < count; i++) {
        lowest = fmin(lowest, y[i]);
        highest = fmax(highest, y[i]);
    }
    double width = x[count - 1] - x[0];
    double height = highest - lowest;

    if (width <= 0 || height <= 0)
        return KNEE_NONE;
    for (size_t i = 0; i < count; i++) {
        double above = (y[i] - lowest) / height - (x[i] - x[0]) / width;

        if (above > largest) {
            largest = above;
            knee = i;
        }
    }
    double threshold = largest - KNEE_SENSITIVITY / (double)(count - 1);

    if (largest <= 0)
        return KNEE_NONE;
    for (size_t i = knee + 1; i < count; i++) {
        if ((y[i] - lowest) / height - (x[i] - x[0]) / width < threshold)
            return knee;
    }
    return KNEE_NONE;
}
