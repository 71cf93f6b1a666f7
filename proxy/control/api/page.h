/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics page, in the Prometheus text format 0.0.4: each family's HELP and TYPE, then its
 * samples together.
 */
#ifndef SPILLWAY_CONTROL_API_PAGE_H
#define SPILLWAY_CONTROL_API_PAGE_H

#include "proxy/control/api/snapshot.h"

struct evbuffer;

#define PAGE_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends the families of the process, then those of every scope. */
void page_write(struct evbuffer *out, struct runtime *runtime);

/* Appends the families of one snapshot. */
void page_write_scope(struct evbuffer *out, const struct snapshot *snapshot);

#endif
