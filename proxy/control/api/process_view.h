/* SPDX-License-Identifier: Apache-2.0 */
/* What the metrics page says of the process as a whole; the names without "spillway_" are those
 * that Prometheus gives to every program. */
#ifndef SPILLWAY_CONTROL_API_PROCESS_VIEW_H
#define SPILLWAY_CONTROL_API_PROCESS_VIEW_H

#include "proxy/core/admin_ops.h"

#include <stddef.h>

#define PROCESS_VALUES_MAX 16

struct process_value {
    const char *name; /* of the family; one after the other when a family has several values */
    const char *help; /* NULL: a further value of the family before */
    const char *label, *label_value; /* NULL: no label */
    double value;
    bool is_counter;
};

/* Fills in what can be found out; returns how many. */
size_t process_view_take(struct process_value values[PROCESS_VALUES_MAX], struct runtime *runtime);

#endif
