/* SPDX-License-Identifier: Apache-2.0 */
/* Views as JSON: an array of objects per scope, one object for the status. */
#ifndef SPILLWAY_CONTROL_API_JSON_VIEW_H
#define SPILLWAY_CONTROL_API_JSON_VIEW_H

#include "proxy/control/api/snapshot.h"

#include <jansson.h>

/* New references; the caller's. */
json_t *json_view_scope(const struct snapshot *snapshot);
json_t *json_view_status(struct runtime *runtime);

#endif
