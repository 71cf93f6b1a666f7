/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the process, and reloads: see runtime.h. */
#include "proxy/core/runtime.h"

#include "proxy/control/log.h"
#include "proxy/core/admin_ops.h"
#include "proxy/core/listen.h"
#include "proxy/core/process.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct runtime *runtime_create(struct config *config, const char *config_path)
{
    struct runtime *runtime = memory_zalloc(sizeof(*runtime), "the runtime");

    runtime->worker_count = config->workers;
    runtime->workers = memory_zalloc(config->workers * sizeof(*runtime->workers), "the workers");
    runtime->config_path = memory_copy_string(config_path, "the configuration's path");
    runtime->open =
        memory_zalloc(config->listener_count * sizeof(*runtime->open), "the listeners' counts");
    runtime->started_ns = loop_clock_ns();
    runtime->session_limit = process_session_limit(config->workers);
    pthread_mutex_init(&runtime->lock, NULL);
    TAILQ_INIT(&runtime->pools);
    for (unsigned i = 0; i < config->workers; i++) {
        int error = worker_init(&runtime->workers[i], runtime, i);
        if (error < 0) {
            log_error("worker %u: no event loop: %s", i, strerror(-error));
            return NULL;
        }
    }
    runtime->plan = plan_build(runtime, config);
    for (unsigned i = 0; i < config->workers; i++) {
        runtime->workers[i].plan = runtime->plan;
        runtime->workers[i].listeners =
            memory_zalloc(config->listener_count * sizeof(*runtime->workers[i].listeners),
                          "the listeners' meters");
    }
    return runtime;
}

/* Returns 0, or -errno after having said why. */
static int listen_on(struct runtime *runtime, unsigned index, const struct config_address *address,
                     const struct config_endpoint *endpoint, bool optional)
{
    const char *name = runtime->plan->config->listeners[index].name;
    int *fds = memory_alloc(runtime->worker_count * sizeof(*fds), "listening sockets");
    int error = listen_open(endpoint, address->wildcard, fds, runtime->worker_count);

    if (error == 0) {
        char text[160];
        listen_format(fds[0], text, sizeof(text));
        log_notice("listener %s: listening on %s", name, text);
        for (unsigned i = 0; i < runtime->worker_count; i++)
            worker_add_listener(&runtime->workers[i], index, fds[i]);
    } else if (!optional) {
        log_error("listener %s: can't listen on %s: %s%s", name, address->text, strerror(-error),
                  error == -EACCES ? " (ports below 1024 need root or CAP_NET_BIND_SERVICE)"
                  : error == -EADDRINUSE
                      ? " (is another server, or another Spillway, running there?)"
                      : "");
    }
    free(fds);
    return optional ? 0 : error;
}

int runtime_listen(struct runtime *runtime)
{
    const struct config *config = runtime->plan->config;

    for (unsigned i = 0; i < config->listener_count; i++) {
        const struct config_listener *listener = &config->listeners[i];
        for (size_t j = 0; j < listener->bind_count; j++) {
            const struct config_address *address = &listener->bind[j];
            for (size_t k = 0; k < address->endpoint_count; k++) {
                /* A machine without IPv6 still has the other half of `*`. */
                bool optional = address->wildcard && k > 0;
                int error = listen_on(runtime, i, address, &address->endpoints[k], optional);
                if (error < 0)
                    return error;
            }
        }
    }
    return 0;
}

int runtime_start(struct runtime *runtime)
{
    for (unsigned i = 0; i < runtime->worker_count; i++) {
        int error = worker_start(&runtime->workers[i]);
        if (error < 0) {
            log_error("worker %u: no thread: %s", i, strerror(-error));
            return error;
        }
    }
    return 0;
}

uint64_t runtime_drain(struct runtime *runtime)
{
    pthread_mutex_lock(&runtime->lock);
    atomic_store(&runtime->draining, true);
    for (unsigned i = 0; i < runtime->worker_count; i++)
        worker_drain(&runtime->workers[i]);
    uint64_t limit_ns = runtime->plan->config->drain_timeout_ns;
    pthread_mutex_unlock(&runtime->lock);
    return limit_ns;
}

unsigned runtime_sessions(struct runtime *runtime)
{
    return atomic_load(&runtime->sessions);
}

/* Twice, since a gate's pump may hand something over to a loop that was wound up before. */
static void wind_up(struct runtime *runtime)
{
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < runtime->worker_count; i++)
            loop_wind_up(&runtime->workers[i].loop);
    }
}

void runtime_destroy(struct runtime *runtime)
{
    struct pool *pool;

    if (runtime == NULL)
        return;
    for (unsigned i = 0; i < runtime->worker_count; i++) {
        if (runtime->workers[i].access != NULL)
            worker_join(&runtime->workers[i]);
    }
    for (unsigned i = 0; i < runtime->worker_count; i++)
        worker_abort_sessions(&runtime->workers[i]);
    wind_up(runtime);
    for (unsigned i = 0; i < runtime->worker_count; i++)
        worker_fini(&runtime->workers[i]);
    plan_free(runtime->plan);
    while ((pool = TAILQ_FIRST(&runtime->pools)) != NULL) {
        TAILQ_REMOVE(&runtime->pools, pool, link);
        pool_destroy(pool);
    }
    pthread_mutex_destroy(&runtime->lock);
    free(runtime->workers);
    free(runtime->config_path);
    free(runtime->open);
    free(runtime);
}

/* ------------------------------------------------------------------ reload */

static void explain(const struct config_errors *errors, char *why, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return;
    why[0] = '\0';
    for (size_t i = 0; i < errors->count && used + 1 < size; i++) {
        int length = config_error_format(errors, i, why + used, size - used);
        if (length < 0)
            return;
        used += (size_t)length;
        if (used + 1 < size) {
            why[used++] = '\n';
            why[used] = '\0';
        }
    }
}

/* A log that can't be opened is no reason to keep the old configuration, but it is said, in the old
 * log. */
static void take_over_logs(const struct config_log *config)
{
    int error = log_open(config);

    if (error < 0)
        log_error("reload: can't open the log %s: %s; writing goes on to the old one",
                  config->target.text, strerror(-error));
    error = access_log_open(config);
    if (error < 0)
        log_error("reload: can't open the access log %s: %s; writing goes on to the old one",
                  config->access.text, strerror(-error));
}

static void take_over(struct runtime *runtime, struct config *config)
{
    struct plan *plan = plan_build(runtime, config);

    runtime->plan = plan;
    for (unsigned i = 0; i < runtime->worker_count; i++)
        worker_switch_plan(&runtime->workers[i], plan);
    take_over_logs(&config->log);
}

static int reload_locked(struct runtime *runtime, struct config_errors *errors)
{
    struct config *config = NULL;
    int error = config_load(runtime->config_path, &config, errors);

    if (error < 0)
        return error;
    if (!config_diff_is_live(runtime->plan->config, config, errors)) {
        config_free(config);
        return -EINVAL;
    }
    take_over(runtime, config);
    return 0;
}

int admin_reload(struct runtime *runtime, char *why, size_t size)
{
    struct config_errors errors;
    int error;

    config_errors_init(&errors);
    pthread_mutex_lock(&runtime->lock);
    error = atomic_load(&runtime->draining) ? -EBUSY : reload_locked(runtime, &errors);
    pthread_mutex_unlock(&runtime->lock);
    if (error == -EBUSY)
        snprintf(why, size, "the proxy is draining");
    else
        explain(&errors, why, size);
    for (size_t i = 0; i < errors.count; i++) {
        char line[512];
        config_error_format(&errors, i, line, sizeof(line));
        log_write(errors.list[i].severity == CONFIG_ERROR ? CONFIG_LOG_ERROR : CONFIG_LOG_WARNING,
                  "%s", line);
    }
    if (error < 0) {
        atomic_fetch_add(&runtime->reloads_failed, 1);
        log_error("reload of %s failed: the old configuration goes on", runtime->config_path);
    } else {
        atomic_fetch_add(&runtime->reloads_done, 1);
        log_notice("reloaded %s", runtime->config_path);
    }
    config_errors_fini(&errors);
    return error;
}
