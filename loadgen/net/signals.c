/* SPDX-License-Identifier: Apache-2.0 */
/* Signals through a signalfd. */
#include "loadgen/net/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void ready(struct loop_io *io, uint32_t events)
{
    struct signals *signals = (void *)((char *)io - offsetof(struct signals, io));
    struct signalfd_siginfo info;

    (void)events;
    while (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        signals->caught(signals);
}

int signals_init(struct signals *signals, struct loop *loop, void (*caught)(struct signals *))
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *signals = (struct signals){
        .io = {.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), .ready = ready},
        .loop = loop,
        .caught = caught};
    if (signals->io.fd < 0)
        return -errno;
    return loop_add(loop, &signals->io);
}

void signals_fini(struct signals *signals)
{
    if (signals->io.fd < 0)
        return;
    loop_remove(signals->loop, &signals->io);
    close(signals->io.fd);
    signals->io.fd = -1;
}
