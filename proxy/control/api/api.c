/* SPDX-License-Identifier: Apache-2.0 */
/* What each path and method does: see api.h. */
#include "proxy/control/api/api.h"

#include "proxy/control/api/json_view.h"
#include "proxy/control/api/page.h"
#include "proxy/io/memory.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#define JSON_CONTENT_TYPE "application/json"
#define WHY_BYTES         8192
#define SETTING_BYTES     128
#define SEGMENTS_MAX      5 /* v1 pools POOL flows FLOW */

/* ------------------------------------------------------------------ answers */

static void answer_json(struct api_reply *reply, int status, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;

    if (text == NULL)
        memory_fail("an answer of the control plane");
    reply->status = status;
    reply->content_type = JSON_CONTENT_TYPE;
    evbuffer_add_printf(reply->body, "%s\n", text);
    free(text);
    json_decref(json);
}

static void fail(struct api_reply *reply, int status, const char *why)
{
    json_t *object = json_object();

    json_object_set_new(object, "error", json_string(why));
    answer_json(reply, status, object);
}

/* The outcome of a change; `why` is what an operation said. */
static void answer_change(struct api_reply *reply, int error, int failure_status, const char *why)
{
    json_t *object;

    if (error < 0) {
        fail(reply, error == -ENOENT ? 404 : failure_status, why);
        return;
    }
    object = json_object();
    json_object_set_new(object, "result", json_string("ok"));
    if (why[0] != '\0')
        json_object_set_new(object, "messages", json_string(why));
    answer_json(reply, 200, object);
}

/* ------------------------------------------------------------------ reading */

static void get_scope(struct runtime *runtime, const struct meter_scope *scope,
                      struct api_reply *reply)
{
    struct snapshot snapshot;

    snapshot_take(&snapshot, scope, runtime);
    answer_json(reply, 200, json_view_scope(&snapshot));
    snapshot_fini(&snapshot);
}

static void get_metrics(struct runtime *runtime, struct api_reply *reply)
{
    reply->status = 200;
    reply->content_type = PAGE_CONTENT_TYPE;
    page_write(reply->body, runtime);
}

/* ------------------------------------------------------------------ changing */

struct change {
    struct runtime *runtime;
    char *const *names; /* the path's segments after "v1/pools" */
    const char *key;
    const json_t *value;
    struct api_reply *reply;
};

/* Negative numbers become huge ones, which every range refuses in its own words. */
static bool change_integer(struct change *change, uint64_t *number)
{
    char why[128];

    if (json_is_integer(change->value)) {
        *number = (uint64_t)json_integer_value(change->value);
        return true;
    }
    snprintf(why, sizeof(why), "\"%s\" takes a whole number", change->key);
    fail(change->reply, 400, why);
    return false;
}

static bool change_string(struct change *change, const char **text)
{
    char why[128];

    *text = json_string_value(change->value);
    if (*text != NULL)
        return true;
    snprintf(why, sizeof(why), "\"%s\" takes a string", change->key);
    fail(change->reply, 400, why);
    return false;
}

/* A value in the file's notation; counts may be plain numbers too. */
static bool change_text(struct change *change, char *text, size_t size)
{
    char why[128];
    int length = -1;

    if (json_is_string(change->value))
        length = snprintf(text, size, "%s", json_string_value(change->value));
    else if (json_is_integer(change->value))
        length = snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(change->value));
    if (length >= 0 && (size_t)length < size)
        return true;
    snprintf(why, sizeof(why), "\"%.64s\" takes a string as in the configuration file",
             change->key);
    fail(change->reply, 400, why);
    return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static void unknown_key(struct change *change, const char *known)
{
    char why[256];

    snprintf(why, sizeof(why), "no setting \"%.64s\" here; there is: %s", change->key, known);
    fail(change->reply, 400, why);
}

static void change_pool(struct change *change)
{
    char why[WHY_BYTES] = "";
    char setting[SETTING_BYTES];
    uint64_t number;
    const char *text;
    int error;

    if (strcmp(change->key, "depth") == 0) {
        if (!change_integer(change, &number))
            return;
        error = admin_set_pool_depth(change->runtime, change->names[0], number, why, sizeof(why));
    } else if (strcmp(change->key, "algorithm") == 0) {
        if (!change_string(change, &text))
            return;
        error = admin_set_algorithm(change->runtime, change->names[0], text, why, sizeof(why));
    } else if (is_one_of(change->key, config_pool_settings) ||
               is_one_of(change->key, config_admission_settings)) {
        if (!change_text(change, setting, sizeof(setting)))
            return;
        error = admin_set_pool(change->runtime, change->names[0], change->key, setting, why,
                               sizeof(why));
    } else {
        unknown_key(change, "depth, algorithm, slack, capacity, ageing, at-limit, admission, "
                            "admission-action, admission-limit, admission-target, "
                            "admission-interval");
        return;
    }
    answer_change(change->reply, error, 400, why);
}

static void change_flow(struct change *change)
{
    char why[WHY_BYTES] = "";
    char setting[SETTING_BYTES];
    uint64_t number;
    int error;

    if (strcmp(change->key, "weight") == 0) {
        if (!change_integer(change, &number))
            return;
        error = admin_set_weight(change->runtime, change->names[0], change->names[2], number, why,
                                 sizeof(why));
    } else if (is_one_of(change->key, config_flow_settings)) {
        if (!change_text(change, setting, sizeof(setting)))
            return;
        error = admin_set_flow(change->runtime, change->names[0], change->names[2], change->key,
                               setting, why, sizeof(why));
    } else {
        unknown_key(change,
                    "weight, target, reservation, limit, burst, queue-limit, response-target");
        return;
    }
    answer_change(change->reply, error, 400, why);
}

static void change_server(struct change *change)
{
    char why[WHY_BYTES] = "";
    uint64_t number;
    const char *text;
    int error;

    if (strcmp(change->key, "depth") == 0) {
        if (!change_integer(change, &number))
            return;
        error = admin_set_server_depth(change->runtime, change->names[0], change->names[2], number,
                                       why, sizeof(why));
    } else if (strcmp(change->key, "state") == 0) {
        if (!change_string(change, &text))
            return;
        error = admin_set_server_state(change->runtime, change->names[0], change->names[2], text,
                                       why, sizeof(why));
    } else {
        unknown_key(change, "depth, state");
        return;
    }
    answer_change(change->reply, error, 400, why);
}

static void post_change(struct runtime *runtime, char *const *names,
                        const struct api_request *request, void (*apply)(struct change *change),
                        struct api_reply *reply)
{
    json_error_t error;
    json_t *object = json_loadb(request->body, request->body_length, 0, &error);

    if (!json_is_object(object) || json_object_size(object) != 1) {
        fail(reply, 400, "the body is a JSON object with one setting, such as {\"depth\": 8}");
    } else {
        void *member = json_object_iter(object);
        struct change change = {runtime, names, json_object_iter_key(member),
                                json_object_iter_value(member), reply};
        apply(&change);
    }
    json_decref(object);
}

static void post_reload(struct runtime *runtime, struct api_reply *reply)
{
    char why[WHY_BYTES] = "";
    int error = admin_reload(runtime, why, sizeof(why));

    /* A file that is gone is not a path of this API that is gone. */
    answer_change(reply, error < 0 ? -EINVAL : 0, 409, why);
}

/* ------------------------------------------------------------------ paths */

struct path {
    char *segments[SEGMENTS_MAX]; /* decoded, owned */
    size_t count;
};

static void path_free(struct path *path)
{
    for (size_t i = 0; i < path->count; i++)
        free(path->segments[i]);
}

/* False when it has too many segments, or one that is no string. */
static bool path_split(const char *text, struct path *path)
{
    path->count = 0;
    while (*text == '/') {
        char encoded[1024];
        size_t length = strcspn(++text, "/");
        size_t decoded = 0;
        if (length >= sizeof(encoded) || path->count == SEGMENTS_MAX)
            return false;
        memcpy(encoded, text, length);
        encoded[length] = '\0';
        text += length;
        char *segment = evhttp_uridecode(encoded, 0, &decoded);
        if (segment == NULL)
            memory_fail("a path of the control plane");
        path->segments[path->count++] = segment;
        if (strlen(segment) != decoded)
            return false;
    }
    return *text == '\0';
}

static bool path_is(const struct path *path, size_t at, const char *name)
{
    return at < path->count && strcmp(path->segments[at], name) == 0;
}

/* The scope that "/v1/NAMEs" reads, or NULL. */
static const struct meter_scope *path_scope(const struct path *path)
{
    static const struct meter_scope *const scopes[] = {&meter_scope_listener, &meter_scope_pool,
                                                       &meter_scope_flow, &meter_scope_server};

    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        size_t length = strlen(scopes[i]->name);
        const char *name = path->segments[1];
        if (strncmp(name, scopes[i]->name, length) == 0 && strcmp(name + length, "s") == 0)
            return scopes[i];
    }
    return NULL;
}

/* What a POST to the path does, or NULL. */
typedef void apply_fn(struct change *change);

static apply_fn *path_apply(const struct path *path)
{
    if (!path_is(path, 0, "v1") || !path_is(path, 1, "pools"))
        return NULL;
    if (path->count == 3)
        return change_pool;
    if (path->count == 5 && path_is(path, 3, "flows"))
        return change_flow;
    if (path->count == 5 && path_is(path, 3, "servers"))
        return change_server;
    return NULL;
}

/* False: the path can't be read. */
static bool handle_get(struct runtime *runtime, const struct path *path, struct api_reply *reply)
{
    const struct meter_scope *scope = NULL;

    if (path->count == 1 && path_is(path, 0, "metrics")) {
        get_metrics(runtime, reply);
        return true;
    }
    if (path->count != 2 || !path_is(path, 0, "v1"))
        return false;
    scope = path_scope(path);
    if (scope != NULL)
        get_scope(runtime, scope, reply);
    else if (path_is(path, 1, "status"))
        answer_json(reply, 200, json_view_status(runtime));
    else
        return false;
    return true;
}

/* False: the path can't be changed. */
static bool handle_post(struct runtime *runtime, const struct path *path,
                        const struct api_request *request, struct api_reply *reply)
{
    apply_fn *apply = path_apply(path);
    bool reload = path->count == 2 && path_is(path, 0, "v1") && path_is(path, 1, "reload");

    if (apply == NULL && !reload)
        return false;
    if (!request->may_change)
        fail(reply, 403, "this address is for reading; changes go through the control socket");
    else if (reload)
        post_reload(runtime, reply);
    else
        post_change(runtime, path->segments + 2, request, apply, reply);
    return true;
}

void api_handle(struct runtime *runtime, const struct api_request *request, struct api_reply *reply)
{
    struct path path;
    bool done = false;

    reply->status = 0;
    if (request->method == API_OTHER) {
        fail(reply, 405, "the methods are GET and POST");
        return;
    }
    if (path_split(request->path, &path)) {
        done = request->method == API_GET ? handle_get(runtime, &path, reply)
                                          : handle_post(runtime, &path, request, reply);
    }
    if (!done)
        fail(reply, 404,
             request->method == API_GET
                 ? "no such page; there are /metrics and /v1/status, listeners, pools, flows, "
                   "servers"
                 : "nothing to change here; there are /v1/reload, /v1/pools/POOL, "
                   "/v1/pools/POOL/flows/FLOW and /v1/pools/POOL/servers/SERVER");
    path_free(&path);
}
