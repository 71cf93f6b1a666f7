/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP sender; states and rules are in the header. */
#include "bench/sim/link/tcp.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

#define DUPLICATES 3

void tcp_init(struct tcp *tcp, uint32_t count, double initial_window)
{
    *tcp = (struct tcp){.count = count, .initial_window = initial_window};
    tcp->segments = memory_zeroed(count, sizeof(*tcp->segments));
}

void tcp_fini(struct tcp *tcp)
{
    free(tcp->segments);
    tcp->segments = NULL;
}

/* ---------------------------------------------------------------- the timer */

static void measure(struct tcp *tcp, uint64_t sample_ns)
{
    if (tcp->rtt_ns == 0) {
        tcp->rtt_ns = sample_ns;
        tcp->rtt_deviation_ns = sample_ns / 2;
    } else {
        uint64_t off_ns =
            sample_ns > tcp->rtt_ns ? sample_ns - tcp->rtt_ns : tcp->rtt_ns - sample_ns;

        tcp->rtt_deviation_ns = (3 * tcp->rtt_deviation_ns + off_ns) / 4;
        tcp->rtt_ns = (7 * tcp->rtt_ns + sample_ns) / 8;
    }
    tcp->timeout_ns = tcp->rtt_ns + 4 * tcp->rtt_deviation_ns;
    if (tcp->timeout_ns < TCP_TIMEOUT_MIN_NS)
        tcp->timeout_ns = TCP_TIMEOUT_MIN_NS;
    if (tcp->timeout_ns > TCP_TIMEOUT_MAX_NS)
        tcp->timeout_ns = TCP_TIMEOUT_MAX_NS;
}

static void restart_timer(struct tcp *tcp, uint64_t now_ns)
{
    tcp->deadline_ns = tcp_done(tcp) ? TCP_NEVER : now_ns + tcp->timeout_ns;
}

/* ---------------------------------------------------------------- sending */

void tcp_begin(struct tcp *tcp, uint64_t rtt_ns, uint64_t now_ns)
{
    struct tcp_segment *segments = tcp->segments;
    uint32_t count = tcp->count;
    double window = tcp->initial_window;

    memset(segments, 0, count * sizeof(*segments));
    *tcp = (struct tcp){.segments = segments, .count = count, .initial_window = window};
    cubic_init(&tcp->cubic, window);
    measure(tcp, rtt_ns);
    restart_timer(tcp, now_ns);
}

bool tcp_send(struct tcp *tcp, uint64_t now_ns, struct tcp_sent *out)
{
    uint32_t segment = tcp->acked_to;

    if ((double)tcp->in_flight + 1 > tcp->cubic.window)
        return false;
    if (tcp->lost == 0) {
        if (tcp->next == tcp->count)
            return false;
        segment = tcp->next++;
    } else {
        while (tcp->segments[segment].state != TCP_LOST)
            segment++;
        tcp->lost--;
        tcp->retransmitted++;
    }
    if (tcp->in_flight == 0)
        restart_timer(tcp, now_ns);
    tcp->in_flight++;
    tcp->segments[segment] = (struct tcp_segment){.state = TCP_IN_FLIGHT, .order = tcp->order};
    *out = (struct tcp_sent){.segment = segment, .order = tcp->order++, .time_ns = now_ns};
    return true;
}

/* ---------------------------------------------------------------- what comes back */

static void reduce(struct tcp *tcp, enum cubic_event event)
{
    tcp->reductions++;
    tcp->reduced_at = tcp->order;
    tcp->recover_to = event == CUBIC_TIMEOUT ? 0 : tcp->next;
    cubic_reduce(&tcp->cubic, event);
}

/* Those sent before `order` have been passed once more. */
static void find_lost(struct tcp *tcp, uint32_t order)
{
    bool again = false;

    for (uint32_t i = tcp->acked_to; i < tcp->next; i++) {
        struct tcp_segment *segment = &tcp->segments[i];

        if (segment->state != TCP_IN_FLIGHT || segment->order >= order ||
            ++segment->passed < DUPLICATES)
            continue;
        segment->state = TCP_LOST;
        tcp->in_flight--;
        tcp->lost++;
        again |= segment->order >= tcp->reduced_at;
    }
    if (again)
        reduce(tcp, CUBIC_LOSS);
}

void tcp_acked(struct tcp *tcp, const struct tcp_sent *sent, bool marked, uint64_t now_ns)
{
    struct tcp_segment *segment = &tcp->segments[sent->segment];

    if (segment->state == TCP_ACKED)
        return;
    if (segment->state == TCP_IN_FLIGHT)
        tcp->in_flight--;
    else
        tcp->lost--;
    segment->state = TCP_ACKED;
    while (tcp->acked_to < tcp->next && tcp->segments[tcp->acked_to].state == TCP_ACKED)
        tcp->acked_to++;
    measure(tcp, now_ns - sent->time_ns);
    restart_timer(tcp, now_ns);
    find_lost(tcp, sent->order);
    if (marked && sent->order >= tcp->reduced_at)
        reduce(tcp, CUBIC_MARK);
    else if (!marked && tcp->acked_to >= tcp->recover_to)
        cubic_acked(&tcp->cubic, tcp->rtt_ns, now_ns);
}

void tcp_timeout(struct tcp *tcp, uint64_t now_ns)
{
    for (uint32_t i = tcp->acked_to; i < tcp->next; i++) {
        if (tcp->segments[i].state == TCP_IN_FLIGHT) {
            tcp->segments[i].state = TCP_LOST;
            tcp->lost++;
        }
    }
    tcp->in_flight = 0;
    tcp->timeouts++;
    reduce(tcp, CUBIC_TIMEOUT);
    tcp->timeout_ns *= 2;
    if (tcp->timeout_ns > TCP_TIMEOUT_MAX_NS)
        tcp->timeout_ns = TCP_TIMEOUT_MAX_NS;
    restart_timer(tcp, now_ns);
}
