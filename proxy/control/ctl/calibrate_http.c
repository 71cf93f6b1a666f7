/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring an HTTP server: GET and HEAD of the URLs given; PUT and DELETE of files of our own
 * below a URL given for that. Each connection has one file, so that no two requests meet; DELETE
 * follows a PUT of the same connection, which is not counted.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "protocols/http/http1.h"
#include "protocols/http/http1_write.h"
#include "proxy/control/ctl/calibrate.h"

#define FIELDS_MAX   200
#define DELETE_BYTES 4096
#define HTTP_PORT    "80"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct http1_limits reply_limits = {.request_line_bytes = 16 << 10,
                                                 .head_bytes = 128 << 10};

static const uint32_t put_sizes[] = {0, 4096, 65536, 262144, 1048576};

struct http_url {
    char text[1024]; /* cut into pieces */
    const char *host, *port;
    char authority[300];
    char path[1024];
};

struct http_case {
    struct calibrate_loop loop;
    const struct calibrate_options *options;
    struct calibrate_table *table;
    struct http_url url;
    enum http1_method method; /* of the run */
    uint32_t size;            /* of PUT */
    uint8_t *data;
    unsigned failed_status; /* first status of the run that is neither 2xx nor 3xx; 0: none */
    uint64_t body_bytes;    /* of the latest reply */
    struct http_reply {
        enum http1_method method; /* it answers */
        struct http1_scan scan;
        struct http1_body body;
        bool in_body, close;
    } replies[CALIBRATE_LINKS_MAX];
};

/* ------------------------------------------------------------------ URLs */

static int misread(const char *text, const char *why)
{
    calibrate_say("'%s' %s; expected http://HOST[:PORT]/PATH", text, why);
    return CALIBRATE_USAGE;
}

static int parse_url(const char *text, struct http_url *url)
{
    static const char scheme[] = "http://";
    char *host;
    char *port = (char *)HTTP_PORT;

    if (strncasecmp(text, "https://", 8) == 0)
        return misread(text, "asks for TLS, which is not spoken here: give the port that serves "
                             "plain HTTP");
    if (strncasecmp(text, scheme, sizeof(scheme) - 1) != 0)
        return misread(text, "is no URL");
    text += sizeof(scheme) - 1;
    size_t length = strcspn(text, "/?#");
    if (length == 0 || length >= sizeof(url->authority) || strlen(text) >= sizeof(url->path))
        return misread(text, "has no host or is too long");
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            return misread(text, "has a character that must be percent-encoded");
    }
    snprintf(url->authority, sizeof(url->authority), "%.*s", (int)length, text);
    snprintf(url->path, sizeof(url->path), "%s%.*s", text[length] == '/' ? "" : "/",
             (int)strcspn(text + length, "#"), text + length);
    memcpy(url->text, url->authority, length + 1);
    if (!calibrate_split_host(url->text, &host, &port))
        return misread(text, "has no host that can be read");
    url->host = host;
    url->port = port;
    return CALIBRATE_OK;
}

/* ------------------------------------------------------------------ requests */

/* The file that this connection puts and deletes. */
static void put_target(const struct http_case *c, const struct calibrate_link *link, char *text,
                       size_t size)
{
    size_t length = strlen(c->url.path);

    if (c->method != HTTP1_METHOD_PUT && c->method != HTTP1_METHOD_DELETE)
        snprintf(text, size, "%s", c->url.path);
    else
        snprintf(text, size, "%s%sspillway-calibrate-%d-%u", c->url.path,
                 c->url.path[length - 1] == '/' ? "" : "/", (int)getpid(), link->index);
}

static bool http_next(void *context, struct calibrate_link *link)
{
    struct http_case *c = context;
    struct http_reply *reply = &c->replies[link->index];
    struct http1_writer writer;
    char target[1100];

    if (c->failed_status != 0)
        return false;
    enum http1_method method = c->method;
    /* A file is put, then it can be deleted. */
    if (method == HTTP1_METHOD_DELETE && reply->method != HTTP1_METHOD_PUT) {
        method = HTTP1_METHOD_PUT;
        link->counted = false;
    }
    *reply = (struct http_reply){.method = method};
    put_target(c, link, target, sizeof(target));
    http1_writer_init(&writer, (char *)link->out, link->out_room);
    const char *name = http1_method_name(method);
    http1_write_request_line(&writer, (struct http1_slice){name, strlen(name)},
                             (struct http1_slice){target, strlen(target)});
    http1_write_field(&writer, HTTP1_SLICE("Host"),
                      (struct http1_slice){c->url.authority, strlen(c->url.authority)});
    http1_write_field(&writer, HTTP1_SLICE("User-Agent"), HTTP1_SLICE("spillctl-calibrate"));
    if (method == HTTP1_METHOD_PUT) {
        http1_write_literal(&writer, "Content-Length: ");
        http1_write_decimal(&writer, c->size);
        http1_write_literal(&writer, "\r\n");
        link->tail = c->data;
        link->tail_bytes = c->size;
    }
    http1_write_end(&writer);
    link->out_bytes = http1_writer_len(&writer);
    return !writer.overflow;
}

/* ------------------------------------------------------------------ replies */

static enum calibrate_reply wrong(struct http_case *c, const char *what)
{
    calibrate_loop_fail(&c->loop, "%s: %s; is this an HTTP server?", c->loop.peer, what);
    return CALIBRATE_WRONG;
}

static enum calibrate_reply take_head(struct http_case *c, struct calibrate_link *link,
                                      struct http_reply *reply, size_t *used)
{
    struct http1_field fields[FIELDS_MAX];
    struct http1_head head;

    http1_head_init(&head, fields, FIELDS_MAX);
    switch (http1_parse_reply_head((const char *)link->in, link->in_bytes, &reply->scan,
                                   &reply_limits, reply->method, &head)) {
    case HTTP1_NEED_MORE:
        return CALIBRATE_MORE;
    case HTTP1_ERROR:
        return wrong(c, head.error_reason);
    case HTTP1_OK:
        break;
    }
    reply->scan = (struct http1_scan){0};
    *used = head.head_bytes;
    if (head.status < 200)
        return CALIBRATE_MORE;
    if (head.framing == HTTP1_FRAMING_UNTIL_CLOSE)
        return wrong(c, "the reply ends with its connection, which can't be measured");
    if (head.status >= 400 && c->failed_status == 0)
        c->failed_status = head.status;
    http1_body_init(&reply->body, &head);
    reply->in_body = true;
    reply->close = !head.keep_alive;
    return CALIBRATE_DONE;
}

static enum calibrate_reply http_reply(void *context, struct calibrate_link *link, size_t *used)
{
    struct http_case *c = context;
    struct http_reply *reply = &c->replies[link->index];

    while (!reply->in_body) {
        size_t head_bytes = 0;
        const struct calibrate_link rest = {.in = link->in + *used,
                                            .in_bytes = link->in_bytes - *used};
        struct calibrate_link view = rest;
        enum calibrate_reply result = take_head(c, &view, reply, &head_bytes);
        *used += head_bytes;
        if (result == CALIBRATE_WRONG || (result == CALIBRATE_MORE && head_bytes == 0))
            return result;
    }
    if (!http1_body_is_done(&reply->body)) {
        struct http1_slice piece;
        enum http1_body_result result;
        size_t taken;
        do {
            result = http1_body_next(&reply->body, (const char *)link->in + *used,
                                     link->in_bytes - *used, &taken, &piece);
            *used += taken;
        } while (result == HTTP1_BODY_DATA);
        if (result == HTTP1_BODY_ERROR)
            return wrong(c, reply->body.error_reason);
        if (result == HTTP1_BODY_MORE)
            return CALIBRATE_MORE;
    }
    c->body_bytes = reply->body.payload_bytes;
    return reply->close ? CALIBRATE_CLOSE : CALIBRATE_DONE;
}

/* ------------------------------------------------------------------ runs */

static struct calibrate_work begin_run(struct http_case *c, enum http1_method method, uint32_t size)
{
    c->method = method;
    c->size = size;
    c->failed_status = 0;
    for (unsigned i = 0; i < CALIBRATE_LINKS_MAX; i++)
        c->replies[i].method = HTTP1_METHOD_OTHER;
    return (struct calibrate_work){c, http_next, http_reply};
}

static int say_broken(const struct http_case *c)
{
    calibrate_say("%s", c->loop.error);
    return CALIBRATE_UNREACHABLE;
}

static int say_refused(const struct http_case *c, enum http1_method method)
{
    bool put = method == HTTP1_METHOD_PUT || method == HTTP1_METHOD_DELETE;

    calibrate_say("http://%s%s: %s is answered %u; expected %s", c->url.authority, c->url.path,
                  http1_method_name(method), c->failed_status,
                  put ? "a place where anybody may put and delete files, or no --put"
                      : "a URL that anybody may get");
    return CALIBRATE_REFUSED;
}

static int measure(struct http_case *c, enum http1_method method, uint32_t size, unsigned depth)
{
    struct calibrate_row row = {.samples = 0};

    if (calibrate_stopped)
        return CALIBRATE_OK;
    const struct calibrate_work work = begin_run(c, method, size);
    if (calibrate_measure(&c->loop, &work, c->options, depth, &row) < 0)
        return say_broken(c);
    if (c->failed_status != 0)
        return say_refused(c, method);
    struct calibrate_row *kept = calibrate_table_row(c->table, http1_method_name(method),
                                                     method == HTTP1_METHOD_GET   ? c->body_bytes
                                                     : method == HTTP1_METHOD_PUT ? size
                                                                                  : 0);
    if (kept == NULL || row.samples == 0)
        return CALIBRATE_OK;
    calibrate_row_merge(kept, &row);
    return CALIBRATE_OK;
}

static int find_depth(struct http_case *c)
{
    const struct calibrate_work work = begin_run(c, HTTP1_METHOD_GET, 0);

    if (c->table->depth != 0)
        return CALIBRATE_OK;
    unsigned depth = calibrate_find_depth(&c->loop, &work, c->options);
    if (depth == 0)
        return say_broken(c);
    if (c->failed_status != 0)
        return say_refused(c, HTTP1_METHOD_GET);
    c->table->depth = depth > 2 ? depth : 2;
    return CALIBRATE_OK;
}

static int open_url(struct http_case *c, const char *text)
{
    int status = parse_url(text, &c->url);

    if (status != CALIBRATE_OK)
        return status;
    calibrate_loop_fini(&c->loop);
    return calibrate_loop_init(&c->loop, c->url.host, c->url.port, c->options->timeout_s) == 0
               ? CALIBRATE_OK
               : say_broken(c);
}

static int measure_both(struct http_case *c, enum http1_method method, uint32_t size)
{
    int status = CALIBRATE_OK;

    for (unsigned round = 0; round < CALIBRATE_ROUNDS && status == CALIBRATE_OK; round++) {
        status = measure(c, method, size, 1);
        if (status == CALIBRATE_OK)
            status = measure(c, method, size, c->table->depth);
    }
    return status;
}

static int measure_url(struct http_case *c, const char *text)
{
    static const enum http1_method methods[] = {HTTP1_METHOD_GET, HTTP1_METHOD_HEAD};
    int status = open_url(c, text);

    if (status == CALIBRATE_OK)
        status = find_depth(c);
    for (size_t i = 0; i < COUNT_OF(methods) && status == CALIBRATE_OK; i++)
        status = measure_both(c, methods[i], 0);
    return status;
}

/* Ends the run after one DELETE of each connection's file, whether it is there or not. */
struct tidy {
    struct http_case *c;
    bool sent[CALIBRATE_LINKS_MAX];
};

static bool tidy_next(void *context, struct calibrate_link *link)
{
    struct tidy *tidy = context;
    struct http_case *c = tidy->c;

    if (tidy->sent[link->index])
        return false;
    tidy->sent[link->index] = true;
    c->failed_status = 0;
    c->replies[link->index].method = HTTP1_METHOD_PUT;
    return http_next(c, link);
}

static enum calibrate_reply tidy_reply(void *context, struct calibrate_link *link, size_t *used)
{
    return http_reply(((struct tidy *)context)->c, link, used);
}

static void tidy_up(struct http_case *c)
{
    struct tidy tidy = {.c = c};
    const struct calibrate_work work = {&tidy, tidy_next, tidy_reply};
    struct calibrate_run run;

    (void)begin_run(c, HTTP1_METHOD_DELETE, 0);
    if (calibrate_loop_run(&c->loop, &work, c->table->depth, UINT64_MAX, &run) < 0)
        calibrate_say("%s; files http://%s%s/spillway-calibrate-%d-N may be left: please remove "
                      "them",
                      c->loop.error, c->url.authority, c->url.path, (int)getpid());
}

static int measure_put(struct http_case *c, const char *text)
{
    int status = open_url(c, text);

    if (status != CALIBRATE_OK)
        return status;
    calibrate_say("putting files spillway-calibrate-%d-N below %s, which are deleted at the end",
                  (int)getpid(), text);
    for (size_t i = 0; i < COUNT_OF(put_sizes) && status == CALIBRATE_OK; i++)
        status = measure_both(c, HTTP1_METHOD_PUT, put_sizes[i]);
    if (status == CALIBRATE_OK)
        status = measure_both(c, HTTP1_METHOD_DELETE, DELETE_BYTES);
    tidy_up(c);
    return status;
}

int calibrate_http(const struct calibrate_options *options, char *const *urls, int count,
                   struct calibrate_table *table)
{
    static struct http_case c;
    int status = CALIBRATE_OK;

    c = (struct http_case){.options = options, .table = table};
    c.data = calloc(1, put_sizes[COUNT_OF(put_sizes) - 1]);
    if (c.data == NULL)
        status = CALIBRATE_REFUSED;
    table->depth = options->depth;
    for (int i = 0; i < count && status == CALIBRATE_OK; i++)
        status = measure_url(&c, urls[i]);
    if (status == CALIBRATE_OK)
        snprintf(table->target, sizeof(table->target), "%s", c.url.authority);
    if (status == CALIBRATE_OK && options->put_url != NULL)
        status = measure_put(&c, options->put_url);
    calibrate_loop_fini(&c.loop);
    free(c.data);
    return status;
}
