/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: copies of every view of one scope, so that a page can go through them once per meter
 * and no lock is held while it is written.
 *
 * Rows are consistent in themselves (a pool's meters are copied under its lock), not with each
 * other.
 */
#ifndef SPILLWAY_CONTROL_API_SNAPSHOT_H
#define SPILLWAY_CONTROL_API_SNAPSHOT_H

#include "proxy/control/api/meter_table.h"

struct snapshot {
    const struct meter_scope *scope;
    char *rows; /* count * scope->row_bytes; owned */
    size_t count;
    size_t room;
};

/* Takes the rows of a scope; free them with snapshot_fini(). */
void snapshot_take(struct snapshot *snapshot, const struct meter_scope *scope,
                   struct runtime *runtime);
void snapshot_fini(struct snapshot *snapshot);

static inline const void *snapshot_row(const struct snapshot *snapshot, size_t index)
{
    return snapshot->rows + index * snapshot->scope->row_bytes;
}

/* A row's string; "" for one that is not set. */
static inline const char *snapshot_text(const void *row, const struct meter_text *text)
{
    const char *value = *(const char *const *)((const char *)row + text->offset);

    return value != NULL ? value : "";
}

/* Values by kind; the caller looks at meter->kind first. */
static inline uint64_t snapshot_integer(const void *row, const struct meter *meter)
{
    const char *at = (const char *)row + meter->offset;

    return meter->kind == METER_GAUGE_U32 ? *(const uint32_t *)(const void *)at
                                          : *(const uint64_t *)(const void *)at;
}

static inline double snapshot_real(const void *row, const struct meter *meter)
{
    return *(const double *)(const void *)((const char *)row + meter->offset);
}

static inline const struct histogram *snapshot_times(const void *row, const struct meter *meter)
{
    return (const struct histogram *)(const void *)((const char *)row + meter->offset);
}

#endif
