/* SPDX-License-Identifier: Apache-2.0 */
/* config_check()'s part for a pool's cost: what goes with what, and the rates of all operations,
 * the calibrated ones among them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocols/rpc/nfs3.h"
#include "proxy/config/config_schema.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* One of the two maps by operation: what is charged in any case, or for size. */
struct entries {
    const struct config_cost_entry *list;
    size_t count;
};

struct rate_table {
    struct entries base, per_size;
};

/* ------------------------------------------------------------------ calibrated rates
 *
 * Measured with `spillctl calibrate`: see COSTS in spillway.yaml(5) for servers and machine. One
 * unit is a microsecond of the server's time, per_size that of 64 KiB of request and reply.
 */

#define CALIBRATED_UNIT_BYTES 65536

#define ENTRIES(list) ((struct entries){list, COUNT_OF(list)})

static const struct config_cost_entry calibrated_nfs[] = {
    {"metadata", 37}, {"null", 38},     {"getattr", 38}, {"setattr", 44},     {"lookup", 37},
    {"access", 36},   {"readlink", 37}, {"read", 44},    {"write", 52},       {"create", 83},
    {"mkdir", 76},    {"symlink", 78},  {"mknod", 83},   {"remove", 80},      {"rmdir", 75},
    {"rename", 84},   {"link", 55},     {"readdir", 48}, {"readdirplus", 52}, {"fsstat", 39},
    {"fsinfo", 39},   {"pathconf", 37}, {"commit", 53},
};
static const struct config_cost_entry calibrated_nfs_sizes[] = {
    {"read", 15}, {"write", 31}, {"commit", 0}, /* not by size, though of class write */
};
static const struct config_cost_entry calibrated_http[] = {
    {"GET", 32}, {"HEAD", 27}, {"PUT", 50}, {"DELETE", 37}, {"default", 50},
};
static const struct config_cost_entry calibrated_http_sizes[] = {
    {"GET", 10}, {"HEAD", 0}, {"PUT", 60}, {"DELETE", 0}, {"default", 60},
};

static struct rate_table calibrated(bool nfs)
{
    if (nfs)
        return (struct rate_table){ENTRIES(calibrated_nfs), ENTRIES(calibrated_nfs_sizes)};
    return (struct rate_table){ENTRIES(calibrated_http), ENTRIES(calibrated_http_sizes)};
}

/* ------------------------------------------------------------------ rates */

static struct rate_table table_of(const struct config_cost *cost, bool nfs)
{
    if (cost->by == CONFIG_COST_TABLE && cost->table_count == 0)
        return calibrated(nfs);
    return (struct rate_table){
        .base = {cost->table, cost->table_count},
        .per_size = {cost->per_size, cost->per_size_count},
    };
}

static uint32_t find(const struct entries *entries, const char *name, size_t length,
                     uint32_t otherwise)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (strncmp(entries->list[i].operation, name, length) == 0 &&
            entries->list[i].operation[length] == '\0') {
            return entries->list[i].cost;
        }
    }
    return otherwise;
}

static struct config_cost_rate find_rate(const struct rate_table *table, const char *name,
                                         size_t length, struct config_cost_rate otherwise)
{
    return (struct config_cost_rate){
        .base = find(&table->base, name, length, otherwise.base),
        .per_size = find(&table->per_size, name, length, otherwise.per_size),
    };
}

struct config_cost_rate config_cost_of_method(const struct config_cost *cost, const char *method,
                                              size_t length)
{
    const struct rate_table table = table_of(cost, false);

    return find_rate(&table, method, length, cost->other);
}

static uint32_t find_procedure(const struct entries *entries, const char *name, uint32_t otherwise)
{
    for (size_t i = 0; i < entries->count; i++) {
        const char *operation = entries->list[i].operation;

        /* Lower case is NFS: READ is a (strange) HTTP method. */
        if (operation[0] >= 'a' && strcasecmp(operation, name) == 0) {
            return entries->list[i].cost;
        }
    }
    return otherwise;
}

static struct config_cost_rate procedure_rate(const struct rate_table *table, uint32_t proc,
                                              struct config_cost_rate otherwise)
{
    const char *name = nfs3_proc_name(proc);

    return (struct config_cost_rate){
        .base = find_procedure(&table->base, name, otherwise.base),
        .per_size = find_procedure(&table->per_size, name, otherwise.per_size),
    };
}

static void fill_rates(struct config_cost *cost, bool nfs)
{
    const struct rate_table table = table_of(cost, nfs);
    const struct config_cost_rate one = {.base = 1};

    cost->other = find_rate(&table, "default", strlen("default"), one);
    for (int class = 0; class < CONFIG_CLASS_COUNT; class ++) {
        const char *name = nfs_class_name((enum nfs_class) class);

        cost->class_rate[class] = find_rate(&table, name, strlen(name), cost->other);
    }
    for (uint32_t proc = 0; proc < CONFIG_NFS3_PROCEDURES; proc++) {
        cost->nfs3_rate[proc] =
            procedure_rate(&table, proc, cost->class_rate[nfs3_proc_class(proc)]);
    }
}

/* ------------------------------------------------------------------ what goes with what */

/* Operations of the protocol that the pool does not serve. */
static void check_operations(const struct config_pool *pool, const struct entries *entries,
                             const struct config_place *map, struct config_errors *errors)
{
    for (size_t i = 0; i < entries->count; i++) {
        const char *operation = entries->list[i].operation;
        const struct config_place pair = config_place_item(map, i);
        struct config_place place = config_place_get(&pair, "operation");
        const bool for_nfs = operation[0] >= 'a' && operation[0] <= 'z';

        if (strcmp(operation, "default") == 0) {
            continue;
        }
        /* The map is a list of pairs only in here; to the user it is a map. */
        snprintf(place.key, sizeof(place.key), "%.*s.%.64s", CONFIG_KEY_PATH_MAX - 80, map->key,
                 operation);
        if (for_nfs ? pool->used_by_http : pool->used_by_nfs) {
            config_place_report(
                errors, CONFIG_ERROR, &place, "`%s` is an operation of %s; expected %s", operation,
                for_nfs ? "nfs" : "http", for_nfs ? "HTTP methods" : "NFS classes and procedures");
        }
    }
}

/* Which keys each way of counting reads, as bits of enum config_cost_by. */
static const struct {
    const char *key;
    unsigned used_by;
    const char *where;
} key_uses[] = {
    {"per-request", 1u << CONFIG_COST_BYTES, "`by: bytes`"},
    {"bytes-unit", 1u << CONFIG_COST_BYTES | 1u << CONFIG_COST_TABLE, "`by: bytes`"},
    {"table", 1u << CONFIG_COST_TABLE, "`by: table`"},
    {"per-size", 1u << CONFIG_COST_TABLE, "`by: table`"},
    {"request-header", 1u << CONFIG_COST_HEADER, "`by: header`"},
    {"reply-header", 1u << CONFIG_COST_HEADER, "`by: header`"},
    {"max", 1u << CONFIG_COST_HEADER, "`by: header`"},
    {"fallback", 1u << CONFIG_COST_HEADER | 1u << CONFIG_COST_SERVICE_TIME,
     "`by: header` or `by: service-time`"},
    {"unit", 1u << CONFIG_COST_SERVICE_TIME, "`by: service-time`"},
};

static void warn_unread(const struct config_cost *cost, const struct config_place *place,
                        struct config_errors *errors)
{
    for (size_t i = 0; i < COUNT_OF(key_uses); i++) {
        const struct config_place key = config_place_get(place, key_uses[i].key);

        if (config_place_has(place, key_uses[i].key) && !(key_uses[i].used_by >> cost->by & 1)) {
            config_place_report(errors, CONFIG_WARNING, &key, "has no effect without %s",
                                key_uses[i].where);
        }
    }
}

static void check_table(const struct config_cost *cost, const struct config_place *place,
                        const struct config_place *per_size, struct config_errors *errors)
{
    const struct config_place unit = config_place_get(place, "bytes-unit");

    if (cost->table_count == 0 && cost->per_size_count > 0) {
        config_place_report(errors, CONFIG_ERROR, per_size,
                            "is added to what a table says, and there is none; expected `table` "
                            "beside it");
    }
    if (cost->per_size_count == 0 && config_place_has(place, "bytes-unit")) {
        config_place_report(errors, CONFIG_WARNING, &unit, "has no effect without `per-size`");
    }
}

static void check_header(const struct config_pool *pool, const struct config_place *place,
                         const struct config_place *by, struct config_errors *errors)
{
    const struct config_cost *cost = &pool->cost;
    const struct config_place fallback = config_place_get(place, "fallback");

    if (pool->used_by_nfs) {
        config_place_report(errors, CONFIG_ERROR, by,
                            "header is for http, this is nfs; expected request, bytes, table or "
                            "service-time");
    } else if (cost->request_header == NULL && cost->reply_header == NULL) {
        config_place_report(errors, CONFIG_ERROR, by,
                            "there is no header; expected `request-header`, `reply-header` or "
                            "both");
    }
    if (cost->fallback > cost->max && config_place_has(place, "fallback")) {
        config_place_report(errors, CONFIG_ERROR, &fallback, "is above `max`; expected at most %u",
                            cost->max);
    }
}

void config_check_cost(struct config_pool *pool, const struct config_place *place,
                       struct config_errors *errors)
{
    struct config_cost *cost = &pool->cost;
    const struct config_place map = config_place_get(place, "cost");
    const struct config_place by = config_place_get(&map, "by");
    const struct config_place table = config_place_get(&map, "table");
    const struct config_place per_size = config_place_get(&map, "per-size");
    const struct entries own = {cost->table, cost->table_count};
    const struct entries own_sizes = {cost->per_size, cost->per_size_count};

    if (cost->by == CONFIG_COST_TABLE && !by.node->bad) {
        check_table(cost, &map, &per_size, errors);
    } else if (cost->by == CONFIG_COST_HEADER && !by.node->bad) {
        check_header(pool, &map, &by, errors);
    }
    if (!by.node->bad) {
        warn_unread(cost, &map, errors);
    }
    check_operations(pool, &own, &table, errors);
    check_operations(pool, &own_sizes, &per_size, errors);
    if (cost->by == CONFIG_COST_TABLE && cost->table_count == 0) {
        cost->unit_bytes = CALIBRATED_UNIT_BYTES;
    }
    fill_rates(cost, pool->used_by_nfs);
}
