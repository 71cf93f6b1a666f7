/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM as events of a loop; SIGPIPE ignored. */
#ifndef LOADGEN_NET_SIGNALS_H
#define LOADGEN_NET_SIGNALS_H

#include "loadgen/net/loop.h"

struct signals {
    struct loop_io io;
    struct loop *loop;
    /* Called for each SIGINT or SIGTERM. */
    void (*caught)(struct signals *signals);
};

/* 0 or negative errno. From now on the signals do nothing but call `caught`. */
int signals_init(struct signals *signals, struct loop *loop, void (*caught)(struct signals *));
void signals_fini(struct signals *signals);

#endif
