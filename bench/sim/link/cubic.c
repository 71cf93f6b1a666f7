/* SPDX-License-Identifier: Apache-2.0 */
/* CUBIC's window; the formulas are in the header. */
#include "bench/sim/link/cubic.h"

#include <math.h>

#define SCALE      0.4 /* C, in segments per second cubed */
#define BETA       0.7
#define RENO_SHARE (3 * (1 - BETA) / (1 + BETA)) /* as much per window as Reno's 1 with 0.5 */
#define NS_PER_S   1e9

void cubic_init(struct cubic *cubic, double window)
{
    *cubic = (struct cubic){.window = window, .threshold = HUGE_VAL};
}

double cubic_curve(const struct cubic *cubic, double seconds)
{
    double from_s = seconds - cubic->inflection_s;

    return SCALE * from_s * from_s * from_s + cubic->window_max;
}

static void begin_epoch(struct cubic *cubic, uint64_t now_ns)
{
    if (cubic->restarted || cubic->window_max < cubic->window)
        cubic->window_max = cubic->window;
    cubic->restarted = false;
    cubic->inflection_s = cbrt((cubic->window_max - cubic->window) / SCALE);
    cubic->window_reno = cubic->window;
    cubic->epoch_ns = now_ns;
    cubic->epoch = true;
}

void cubic_acked(struct cubic *cubic, uint64_t rtt_ns, uint64_t now_ns)
{
    if (cubic->window < cubic->threshold) {
        cubic->window += 1;
        return;
    }
    if (!cubic->epoch)
        begin_epoch(cubic, now_ns);
    double seconds = (double)(now_ns - cubic->epoch_ns) / NS_PER_S;
    double target = cubic_curve(cubic, seconds + (double)rtt_ns / NS_PER_S);

    cubic->window_reno +=
        (cubic->window_reno < cubic->window_prior ? RENO_SHARE : 1) / cubic->window;
    if (cubic_curve(cubic, seconds) < cubic->window_reno) {
        if (cubic->window < cubic->window_reno)
            cubic->window = cubic->window_reno;
        return;
    }
    target = fmin(fmax(target, cubic->window), 1.5 * cubic->window);
    cubic->window += (target - cubic->window) / cubic->window;
}

void cubic_reduce(struct cubic *cubic, enum cubic_event event)
{
    bool falling = cubic->window < cubic->window_max;

    cubic->window_max = falling ? cubic->window * (1 + BETA) / 2 : cubic->window;
    cubic->window_prior = cubic->window;
    cubic->threshold = cubic->window * BETA;
    if (event == CUBIC_TIMEOUT)
        cubic->window = 1;
    else
        cubic->window = fmax(cubic->threshold, event == CUBIC_LOSS ? 2 : 1);
    cubic->threshold = fmax(cubic->threshold, 2);
    cubic->epoch = false;
    cubic->restarted = event == CUBIC_TIMEOUT;
}
