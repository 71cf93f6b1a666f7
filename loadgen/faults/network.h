/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late and lost packets in a network namespace: the queueing discipline netem, by tc(8).
 *
 * It becomes the root of the device under a handle of our own, and only a root with that handle is
 * ever removed: what somebody else configured is neither replaced nor deleted. Messages go to
 * stderr; the functions say 0 or negative errno.
 */
#ifndef LOADGEN_FAULTS_NETWORK_H
#define LOADGEN_FAULTS_NETWORK_H

#include <stdbool.h>

#include "loadgen/faults/fault_spec.h"

/*
 * Before the load: the namespace and the device are there, the device's root is free, tc is
 * installed and the kernel has netem (tried in a namespace that lives only for the test).
 * Our own namespace is refused without `force`: its lo is everybody's.
 */
int network_check(const struct fault_spec *spec, bool force);

int network_add(const struct fault_spec *spec);

/* Removes our root. 0 also when it, the device or the namespace is gone. */
int network_remove(const char *network, const char *device);

#endif
