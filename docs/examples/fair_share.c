/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_share: two clients share a server that takes 4 requests at a time; one is to get twice what
 * the other gets. Both always have requests waiting, and every request costs the same.
 *
 *     cc fair_share.c $(pkg-config --cflags --libs --static spillway-sched) && ./a.out
 */
#include <spillway/sched.h>
#include <stdio.h>

#define DEPTH 4 /* requests that the server takes at a time */

struct client {
    struct sched_flow flow; /* first, so that a flow's address is its client's */
    unsigned served;
    struct sched_item requests[8]; /* that it keeps sending */
};

int main(void)
{
    static struct client clients[2];
    const struct sched_params params = {.algorithm = SCHED_ALGORITHM_SFQD, .depth = DEPTH};
    struct sched *s = sched_create(&params);
    struct sched_item *at_server[DEPTH], *item;
    unsigned sent = 0;
    uint64_t now_ns = 0; /* a program with a clock passes its time */

    for (uint32_t c = 0; c < 2; c++) {
        sched_flow_init(&clients[c].flow, 2 - c);
        if (s == NULL || sched_flow_attach(s, &clients[c].flow) != 0)
            return 1;
        for (int i = 0; i < 8; i++) {
            sched_item_init(&clients[c].requests[i]);
            sched_enqueue(s, &clients[c].flow, &clients[c].requests[i], 1, now_ns);
        }
    }
    for (unsigned answered = 0; answered < 300; answered++) {
        while ((item = sched_dispatch(s, now_ns)) != NULL)
            at_server[sent++ % DEPTH] = item;
        item = at_server[answered % DEPTH]; /* this server answers in the order it was asked */
        struct client *client = (struct client *)item->flow;
        client->served++;
        sched_complete(s, item, 1, now_ns);
        sched_enqueue(s, &client->flow, item, 1, now_ns); /* the client's next request */
    }
    for (int c = 0; c < 2; c++)
        printf("weight %u: served %u\n", clients[c].flow.weight, clients[c].served);
    sched_destroy(s);
    return 0;
}
