/* SPDX-License-Identifier: Apache-2.0 */
/* What a running proxy can't take over from a new configuration. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proxy/config/config_tree.h"

__attribute__((format(printf, 3, 4))) static void
needs_restart(struct config_errors *errors, const char *key, const char *format, ...)
{
    char what[384];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    config_errors_add(errors, CONFIG_ERROR, 0, 0, key, "%s: needs a restart", what);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

static void diff_text(struct config_errors *errors, const char *key, const char *old,
                      const char *new)
{
    if (!same_text(old, new)) {
        needs_restart(errors, key, "changed from %s to %s", or_none(old), or_none(new));
    }
}

static void diff_count(struct config_errors *errors, const char *key, uint64_t old, uint64_t new)
{
    if (old != new) {
        needs_restart(errors, key, "changed from %llu to %llu", (unsigned long long)old,
                      (unsigned long long)new);
    }
}

/* Order matters not at all to those who connect, so it doesn't here. */
static bool same_addresses(const struct config_address *old, size_t old_count,
                           const struct config_address *new, size_t new_count)
{
    if (old_count != new_count) {
        return false;
    }
    for (size_t i = 0; i < old_count; i++) {
        bool found = false;

        for (size_t j = 0; j < new_count && !found; j++) {
            found = strcmp(old[i].text, new[j].text) == 0;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static void diff_process(const struct config *old, const struct config *new,
                         struct config_errors *errors)
{
    diff_count(errors, "workers", old->workers, new->workers);
    diff_text(errors, "user", old->user, new->user);
    diff_text(errors, "group", old->group, new->group);
    diff_text(errors, "pid-file", old->pid_file, new->pid_file);
    diff_count(errors, "open-files", old->open_files, new->open_files);
    diff_text(errors, "admin.socket", old->admin.socket, new->admin.socket);
    if (!same_addresses(old->admin.http, old->admin.http_count, new->admin.http,
                        new->admin.http_count)) {
        needs_restart(errors, "admin.http", "the addresses changed");
    }
}

static void diff_listener(const struct config_listener *old, const struct config_listener *new,
                          const char *key, struct config_errors *errors)
{
    char inner[CONFIG_KEY_PATH_MAX];

    if (strcmp(old->name, new->name) != 0) {
        needs_restart(errors, key, "listener `%s` is where `%s` was", new->name, old->name);
        return;
    }
    if (!same_addresses(old->bind, old->bind_count, new->bind, new->bind_count)) {
        snprintf(inner, sizeof(inner), "%s.bind", key);
        needs_restart(errors, inner, "the addresses of listener `%s` changed", new->name);
    }
    if (old->protocol != new->protocol) {
        snprintf(inner, sizeof(inner), "%s.protocol", key);
        needs_restart(errors, inner, "listener `%s` changed from %s to %s", new->name,
                      config_protocol_name(old->protocol), config_protocol_name(new->protocol));
    }
}

static const struct config_pool *pool_named(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if (strcmp(config->pools[i].name, name) == 0) {
            return &config->pools[i];
        }
    }
    return NULL;
}

static void diff_pool(const struct config_pool *old, const struct config_pool *new, const char *key,
                      struct config_errors *errors)
{
    char inner[CONFIG_KEY_PATH_MAX];

    if (old->used_by_http != new->used_by_http || old->used_by_nfs != new->used_by_nfs) {
        needs_restart(errors, key, "the protocol of pool `%s` changed", new->name);
    }
    if (old->depth_unit != new->depth_unit) {
        snprintf(inner, sizeof(inner), "%s.depth-unit", key);
        needs_restart(errors, inner, "what the depths of pool `%s` count changed", new->name);
    }
}

bool config_diff_is_live(const struct config *old, const struct config *new,
                         struct config_errors *errors)
{
    const size_t before = errors->error_count;
    char key[64];

    diff_process(old, new, errors);
    for (size_t i = 0; i < old->listener_count && i < new->listener_count; i++) {
        snprintf(key, sizeof(key), "listeners[%zu]", i);
        diff_listener(&old->listeners[i], &new->listeners[i], key, errors);
    }
    if (old->listener_count != new->listener_count) {
        needs_restart(errors, "listeners", "there are %zu now, there were %zu", new->listener_count,
                      old->listener_count);
    }
    for (size_t i = 0; i < new->pool_count; i++) {
        const struct config_pool *pool = pool_named(old, new->pools[i].name);

        snprintf(key, sizeof(key), "pools[%zu]", i);
        if (pool == NULL) {
            needs_restart(errors, key, "pool `%s` is new", new->pools[i].name);
        } else {
            diff_pool(pool, &new->pools[i], key, errors);
        }
    }
    for (size_t i = 0; i < old->pool_count; i++) {
        if (pool_named(new, old->pools[i].name) == NULL) {
            needs_restart(errors, "pools", "pool `%s` is gone", old->pools[i].name);
        }
    }
    return errors->error_count == before;
}
