/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no single key can say: names that must be there and be unique, addresses and users looked
 * up, keys that make no sense together. Runs over a configuration whose every value is valid by
 * itself; places whose value had to be replaced are not spoken of again.
 */
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/config/config_schema.h"
#include "proxy/config/config_value.h"

/* ------------------------------------------------------------------ names */

struct named {
    const char *name;
    size_t index;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

void config_check_names(const struct config_place *list, const char *const *name, size_t stride,
                        size_t count, const char *what, struct config_errors *errors)
{
    struct named *names = config_must(calloc(count + 1, sizeof(*names)));

    for (size_t i = 0; i < count; i++) {
        names[i] = (struct named){*(const char *const *)((const char *)name + i * stride), i};
    }
    qsort(names, count, sizeof(*names), compare_named);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i].name, names[i - 1].name) != 0) {
            continue;
        }
        const struct config_place earlier = config_place_item(list, names[i - 1].index);
        const struct config_place first = config_place_get(&earlier, "name");
        const struct config_place item = config_place_item(list, names[i].index);
        const struct config_place place = config_place_get(&item, "name");

        if (!first.node->bad) {
            config_place_report(errors, CONFIG_ERROR, &place,
                                "`%s` is the name of a %s in line %u already; expected another",
                                names[i].name, what, first.node->line);
        }
    }
    free(names);
}

/* ------------------------------------------------------------------ addresses */

void config_check_address(struct config_address *address, const struct config_place *place,
                          bool bind, unsigned flags, struct config_errors *errors)
{
    if (place->node->bad) {
        return;
    }
    const char *wrong = config_address_resolve(address, bind, (flags & CONFIG_NO_LOOKUP) == 0);

    if (wrong != NULL) {
        config_place_report(
            errors, CONFIG_ERROR, place,
            "`%s` can't be resolved: %s; expected an address or a name that has one", address->text,
            wrong);
    }
}

/* One address that something listens on. */
struct bound {
    const struct config_address *address;
    struct config_place place;
};

static bool same_port_zero(const struct config_endpoint *endpoint)
{
    const struct sockaddr_in *addr = (const void *)&endpoint->addr;

    /* sin_port and sin6_port are at the same place. Port 0 is a different one each time. */
    return endpoint->addr.ss_family != AF_UNIX && addr->sin_port == 0;
}

static bool overlap(const struct config_address *a, const struct config_address *b)
{
    for (size_t i = 0; i < a->endpoint_count; i++) {
        for (size_t j = 0; j < b->endpoint_count; j++) {
            if (config_endpoint_equal(&a->endpoints[i], &b->endpoints[j]) &&
                !same_port_zero(&a->endpoints[i])) {
                return true;
            }
        }
    }
    return false;
}

static void check_overlaps(const struct bound *bound, size_t count, struct config_errors *errors)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (overlap(bound[i].address, bound[j].address)) {
                config_place_report(errors, CONFIG_ERROR, &bound[i].place,
                                    "`%s` is bound in line %u already; expected another address",
                                    bound[i].address->text, bound[j].place.node->line);
                break;
            }
        }
    }
}

static void check_binds(struct config *config, const struct config_place *root, unsigned flags,
                        struct config_errors *errors)
{
    size_t count = config->admin.http_count, used = 0;

    for (size_t i = 0; i < config->listener_count; i++) {
        count += config->listeners[i].bind_count;
    }
    struct bound *bound = config_must(calloc(count + 1, sizeof(*bound)));
    const struct config_place admin = config_place_get(root, "admin");
    const struct config_place http = config_place_get(&admin, "http");
    const struct config_place listeners = config_place_get(root, "listeners");

    for (size_t i = 0; i < config->admin.http_count; i++, used++) {
        bound[used] = (struct bound){&config->admin.http[i], config_place_item(&http, i)};
        config_check_address(&config->admin.http[i], &bound[used].place, true, flags, errors);
        if (!config_address_is_local(&config->admin.http[i])) {
            config_place_report(errors, CONFIG_WARNING, &bound[used].place,
                                "`%s` is open to other machines, which then can read the metrics",
                                config->admin.http[i].text);
        }
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        struct config_listener *listener = &config->listeners[i];
        const struct config_place place = config_place_item(&listeners, i);
        const struct config_place list = config_place_get(&place, "bind");

        for (size_t j = 0; j < listener->bind_count; j++, used++) {
            bound[used] = (struct bound){&listener->bind[j], config_place_item(&list, j)};
            config_check_address(&listener->bind[j], &bound[used].place, true, flags, errors);
        }
    }
    check_overlaps(bound, used, errors);
    free(bound);
}

/* ------------------------------------------------------------------ listeners */

static const char *nth_pool(const void *config, size_t index)
{
    return ((const struct config *)config)->pools[index].name;
}

struct checker {
    struct config *config;
    struct config_errors *errors;
    bool pool_names_known;
};

/* A pool whose name was wrong may be the one that a listener means. */
static bool pool_names_are_known(const struct config_place *root)
{
    const struct config_place pools = config_place_get(root, "pools");

    for (size_t i = 0; i < pools.node->count; i++) {
        const struct config_place item = config_place_item(&pools, i);

        if (config_place_get(&item, "name").node->bad) {
            return false;
        }
    }
    return !pools.node->bad;
}

static struct config_pool *find_pool(const struct checker *checker, const char *name,
                                     const struct config_place *place)
{
    struct config *config = checker->config;

    for (size_t i = 0; i < config->pool_count; i++) {
        if (strcmp(config->pools[i].name, name) == 0) {
            return &config->pools[i];
        }
    }
    if (!checker->pool_names_known) {
        return NULL;
    }
    const char *guess = config_suggest(name, config->pool_count, nth_pool, config);

    config_place_report(checker->errors, CONFIG_ERROR, place,
                        "there is no pool `%s`%s%s%s; expected the name of one under `pools`", name,
                        guess != NULL ? ", did you mean `" : "", guess != NULL ? guess : "",
                        guess != NULL ? "`?" : "");
    return NULL;
}

static void use_pool(struct config_pool *pool, enum config_protocol protocol,
                     const struct config_place *place, struct config_errors *errors)
{
    bool *mine = protocol == CONFIG_PROTOCOL_HTTP ? &pool->used_by_http : &pool->used_by_nfs;
    const bool other = protocol == CONFIG_PROTOCOL_HTTP ? pool->used_by_nfs : pool->used_by_http;

    if (other && !*mine) {
        config_place_report(errors, CONFIG_ERROR, place,
                            "pool `%s` serves http and nfs; expected a pool for each protocol",
                            pool->name);
    }
    *mine = true;
}

/* Keys that the user set and that are for the other protocol only. */
static void warn_unread(const struct config_place *map, const char *const *keys,
                        enum config_protocol protocol, struct config_errors *errors)
{
    for (; *keys != NULL; keys++) {
        if (config_place_has(map, *keys)) {
            const struct config_place place = config_place_get(map, *keys);

            config_place_report(errors, CONFIG_WARNING, &place, "has no effect: the listener is %s",
                                config_protocol_name(protocol));
        }
    }
}

static void check_unread(const struct config_listener *listener, const struct config_place *place,
                         struct config_errors *errors)
{
    static const char *const http_limits[] = {"request-line", "header", "header-fields", "body",
                                              NULL};
    static const char *const nfs_limits[] = {"record", "fragments", NULL};
    static const char *const http_timeouts[] = {"header", "keep-alive", NULL};
    static const char *const http_keys[] = {"trusted-proxies", "abort-on-close", NULL};
    const struct config_place limits = config_place_get(place, "limits");
    const struct config_place timeouts = config_place_get(place, "timeouts");

    if (listener->protocol == CONFIG_PROTOCOL_HTTP) {
        warn_unread(&limits, nfs_limits, listener->protocol, errors);
        return;
    }
    warn_unread(&limits, http_limits, listener->protocol, errors);
    warn_unread(&timeouts, http_timeouts, listener->protocol, errors);
    warn_unread(place, http_keys, listener->protocol, errors);
}

static void check_routes(const struct checker *checker, struct config_listener *listener,
                         const struct config_place *place)
{
    struct config_errors *errors = checker->errors;
    const bool http = listener->protocol == CONFIG_PROTOCOL_HTTP;
    const struct config_place routes = config_place_get(place, "routes");

    if (listener->route_count > 0 && !http) {
        config_place_report(errors, CONFIG_ERROR, &routes,
                            "routes are for http; expected `pool` alone");
    }
    for (size_t i = 0; i < listener->route_count; i++) {
        struct config_route *route = &listener->routes[i];
        const struct config_place item = config_place_item(&routes, i);
        const struct config_place match = config_place_get(&item, "match");
        const struct config_place pool_place = config_place_get(&item, "pool");
        struct config_pool *pool = find_pool(checker, route->pool_name, &pool_place);

        route->pool = pool;
        if (pool != NULL && http) {
            use_pool(pool, listener->protocol, &pool_place, errors);
        }
        config_check_match(&route->match, &match, http, !http, errors);
    }
}

static void check_listener(const struct checker *checker, struct config_listener *listener,
                           const struct config_place *place)
{
    struct config_errors *errors = checker->errors;
    const struct config_place protocol = config_place_get(place, "protocol");

    if (listener->pool_name != NULL) {
        const struct config_place pool_place = config_place_get(place, "pool");
        struct config_pool *pool = find_pool(checker, listener->pool_name, &pool_place);

        listener->pool = pool;
        if (pool != NULL && !protocol.node->bad) {
            use_pool(pool, listener->protocol, &pool_place, errors);
        }
    } else if (listener->protocol == CONFIG_PROTOCOL_NFS) {
        config_place_report(errors, CONFIG_ERROR, place, "has no pool; expected `pool: NAME`");
    } else if (listener->route_count == 0) {
        config_place_report(errors, CONFIG_ERROR, place,
                            "has neither pool nor routes; expected `pool: NAME`");
    }
    for (size_t i = 0; i < listener->trusted_proxy_count; i++) {
        config_parse_prefix(listener->trusted_proxies[i].text, &listener->trusted_proxies[i]);
    }
    if (protocol.node->bad) {
        return;
    }
    check_routes(checker, listener, place);
    check_unread(listener, place, errors);
}

/* ------------------------------------------------------------------ the process */

static uint32_t usable_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        return (uint32_t)CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (uint32_t)online : 1;
}

static void check_output(struct config_output *output, const struct config_place *place,
                         bool may_be_off, struct config_errors *errors)
{
    if (strcmp(output->text, "stderr") == 0) {
        output->kind = CONFIG_OUTPUT_STDERR;
    } else if (strchr(output->text, '/') != NULL) {
        output->kind = CONFIG_OUTPUT_FILE;
    } else if (strcmp(output->text, "off") != 0 || !may_be_off) {
        config_place_report(errors, CONFIG_ERROR, place,
                            "`%s` is not possible; expected %sstderr, or a path such as "
                            "/var/log/spillway.log or ./spillway.log",
                            output->text, may_be_off ? "off, " : "");
    }
}

static void check_user(struct config *config, const struct config_place *root,
                       struct config_errors *errors)
{
    const struct config_place user_place = config_place_get(root, "user");
    const struct config_place group_place = config_place_get(root, "group");

    if (config->user != NULL) {
        const struct passwd *user = getpwnam(config->user);

        if (user == NULL) {
            config_place_report(errors, CONFIG_ERROR, &user_place,
                                "there is no user `%s`; expected a user of this machine",
                                config->user);
        } else {
            config->has_user = config->has_group = true;
            config->uid = user->pw_uid;
            config->gid = user->pw_gid;
        }
    }
    if (config->group != NULL) {
        const struct group *group = getgrnam(config->group);

        if (group == NULL) {
            config_place_report(errors, CONFIG_ERROR, &group_place,
                                "there is no group `%s`; expected a group of this machine",
                                config->group);
        } else {
            config->has_group = true;
            config->gid = group->gr_gid;
        }
    }
}

void config_check(struct config *config, const struct config_tree *tree, unsigned flags,
                  struct config_errors *errors)
{
    const struct config_place root = config_place_root(tree->root);
    const struct config_place log = config_place_get(&root, "log");
    const struct config_place target = config_place_get(&log, "target");
    const struct config_place access = config_place_get(&log, "access");
    const struct config_place listeners = config_place_get(&root, "listeners");
    const struct config_place pools = config_place_get(&root, "pools");
    const struct checker checker = {config, errors, pool_names_are_known(&root)};

    if (config->workers == 0) {
        config->workers = usable_cpus();
    }
    check_output(&config->log.target, &target, false, errors);
    check_output(&config->log.access, &access, true, errors);
    if ((flags & CONFIG_NO_LOOKUP) == 0) {
        check_user(config, &root, errors);
    }
    check_binds(config, &root, flags, errors);
    config_check_names(&listeners, &config->listeners[0].name, sizeof(config->listeners[0]),
                       config->listener_count, "listener", errors);
    config_check_names(&pools, &config->pools[0].name, sizeof(config->pools[0]), config->pool_count,
                       "pool", errors);
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct config_place place = config_place_item(&listeners, i);

        check_listener(&checker, &config->listeners[i], &place);
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        const struct config_place place = config_place_item(&pools, i);

        config_check_pool(&config->pools[i], &place, flags, errors);
    }
}
