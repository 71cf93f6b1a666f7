/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax of a message head: its first line and its field lines (RFC 9112 §2 to §5).
 *
 * One pass over the bytes. A head that is not whole yet is not remembered in parts: it is parsed
 * again from its start, but only when another line end has come in (struct http1_scan), so the
 * work for one head is bounded by its length times its lines. The meaning of the fields is worked
 * out afterwards, in http1_meaning.c.
 */
#include "protocols/http/http1_internal.h"

#include <assert.h>
#include <string.h>

#include "protocols/http/http1_uri.h"

const struct http1_limits http1_default_limits = {
    .request_line_bytes = 8192,
    .head_bytes = 65536,
    .allow_connect = false,
};

static const char *const method_names[HTTP1_METHOD_COUNT] = {
    [HTTP1_METHOD_OTHER] = "OTHER",     [HTTP1_METHOD_GET] = "GET",
    [HTTP1_METHOD_HEAD] = "HEAD",       [HTTP1_METHOD_POST] = "POST",
    [HTTP1_METHOD_PUT] = "PUT",         [HTTP1_METHOD_DELETE] = "DELETE",
    [HTTP1_METHOD_CONNECT] = "CONNECT", [HTTP1_METHOD_OPTIONS] = "OPTIONS",
    [HTTP1_METHOD_TRACE] = "TRACE",     [HTTP1_METHOD_PATCH] = "PATCH",
};

const char *http1_method_name(enum http1_method method)
{
    return method_names[method];
}

bool http1_method_is_idempotent(enum http1_method method)
{
    switch (method) {
    case HTTP1_METHOD_GET:
    case HTTP1_METHOD_HEAD:
    case HTTP1_METHOD_PUT:
    case HTTP1_METHOD_DELETE:
    case HTTP1_METHOD_OPTIONS:
    case HTTP1_METHOD_TRACE:
        return true;
    default:
        return false;
    }
}

void http1_head_init(struct http1_head *head, struct http1_field *fields, uint16_t fields_max)
{
    *head = (struct http1_head){.fields = fields, .fields_max = fields_max};
}

enum http1_result http1_head_fail(struct http1_head *head, unsigned status, const char *reason)
{
    head->error_status = (uint16_t)status;
    head->error_reason = reason;
    return HTTP1_ERROR;
}

static bool methods_equal(struct http1_slice name, enum http1_method method)
{
    return strlen(method_names[method]) == name.len &&
           memcmp(method_names[method], name.ptr, name.len) == 0;
}

static enum http1_method method_lookup(struct http1_slice name)
{
    if (name.len == 3 && memcmp(name.ptr, "GET", 3) == 0)
        return HTTP1_METHOD_GET;
    for (int m = HTTP1_METHOD_OTHER + 1; m < HTTP1_METHOD_COUNT; m++)
        if (methods_equal(name, (enum http1_method)m))
            return (enum http1_method)m;
    return HTTP1_METHOD_OTHER;
}

/* CRLF at *p: steps over it. */
static enum http1_result parse_line_end(struct http1_head *head, const char **p, const char *end)
{
    if (*p == end)
        return HTTP1_NEED_MORE;
    if (**p != '\r')
        return http1_head_fail(head, 400, **p == '\n' ? "bare LF" : "junk at the end of a line");
    if (*p + 1 == end)
        return HTTP1_NEED_MORE;
    if ((*p)[1] != '\n')
        return http1_head_fail(head, 400, "bare CR");
    *p += 2;
    return HTTP1_OK;
}

/* "HTTP/1.x" at *p: steps over it. */
static enum http1_result parse_version(struct http1_head *head, const char **p, const char *end)
{
    static const char version[] = "HTTP/";
    const char *q = *p;

    for (size_t i = 0; i < sizeof(version) - 1; i++, q++) {
        if (q == end)
            return HTTP1_NEED_MORE;
        if (*q != version[i])
            return http1_head_fail(head, 400, "malformed HTTP version");
    }
    for (int i = 0; i < 3; i++) {
        if (q + i == end)
            return HTTP1_NEED_MORE;
        if (i == 1 ? q[i] != '.' : !http1_char_is(q[i], HTTP1_CHAR_DIGIT))
            return http1_head_fail(head, 400, "malformed HTTP version");
    }
    if (q[0] != '1')
        return http1_head_fail(head, 505, "HTTP version is not 1.x");
    head->minor = q[2] == '0' ? 0 : 1;
    *p = q + 3;
    return HTTP1_OK;
}

static void split_query(struct http1_head *head, const char *p, const char *end)
{
    const char *mark = memchr(p, '?', (size_t)(end - p));

    if (!mark) {
        head->path = (struct http1_slice){p, (size_t)(end - p)};
        return;
    }
    head->path = (struct http1_slice){p, (size_t)(mark - p)};
    head->query = (struct http1_slice){mark + 1, (size_t)(end - mark - 1)};
}

static enum http1_result split_absolute_target(struct http1_head *head)
{
    const char *p = head->target.ptr;
    const char *end = p + head->target.len;
    const char *colon = memchr(p, ':', head->target.len);

    if (!colon || end - colon < 3 || colon[1] != '/' || colon[2] != '/')
        return http1_head_fail(head, 400, "malformed request target");
    head->scheme = (struct http1_slice){p, (size_t)(colon - p)};
    if (!http1_slice_is(head->scheme, "http") && !http1_slice_is(head->scheme, "https"))
        return http1_head_fail(head, 400, "scheme of the request target is not http or https");

    const char *authority = colon + 3;
    const char *path = authority;
    while (path < end && *path != '/' && *path != '?')
        path++;
    head->host = (struct http1_slice){authority, (size_t)(path - authority)};
    if (!http1_host_is_valid(head->host))
        return http1_head_fail(head, 400, "invalid authority in the request target");
    head->form = HTTP1_FORM_ABSOLUTE;
    split_query(head, path, end);
    return HTTP1_OK;
}

static enum http1_result split_connect_target(struct http1_head *head)
{
    const char *colon = memrchr(head->target.ptr, ':', head->target.len);

    if (!colon || colon + 1 == head->target.ptr + head->target.len ||
        !http1_host_is_valid(head->target))
        return http1_head_fail(head, 400, "CONNECT target is not host:port");
    head->form = HTTP1_FORM_AUTHORITY;
    head->host = head->target;
    return HTTP1_OK;
}

/* RFC 9112 §3.2 */
static enum http1_result split_target(struct http1_head *head, const struct http1_limits *limits)
{
    const char *target = head->target.ptr;

    if (head->method == HTTP1_METHOD_CONNECT) {
        if (!limits->allow_connect)
            return http1_head_fail(head, 501, "CONNECT is not served here");
        return split_connect_target(head);
    }
    if (target[0] == '/') {
        head->form = HTTP1_FORM_ORIGIN;
        split_query(head, target, target + head->target.len);
        return HTTP1_OK;
    }
    if (target[0] == '*' && head->target.len == 1) {
        if (head->method != HTTP1_METHOD_OPTIONS)
            return http1_head_fail(head, 400, "request target * is for OPTIONS only");
        head->form = HTTP1_FORM_ASTERISK;
        head->path = head->target;
        return HTTP1_OK;
    }
    return split_absolute_target(head);
}

static enum http1_result parse_request_line(struct http1_head *head, const char **cursor,
                                            const char *end, const struct http1_limits *limits)
{
    const char *p = *cursor;
    const char *start = p;
    enum http1_result result;

    while (p < end && http1_char_is(*p, HTTP1_CHAR_TOKEN))
        p++;
    if (p == end)
        return HTTP1_NEED_MORE;
    if (*p != ' ' || p == start)
        return http1_head_fail(head, 400, "malformed method");
    head->method_name = (struct http1_slice){start, (size_t)(p - start)};
    head->method = (uint8_t)method_lookup(head->method_name);

    const char *target = ++p;
    p = http1_find_target_end(p, end);
    if (p == end)
        return HTTP1_NEED_MORE;
    if (*p != ' ' || p == target)
        return http1_head_fail(head, 400, "malformed request target");
    head->target = (struct http1_slice){target, (size_t)(p - target)};
    p++;

    result = parse_version(head, &p, end);
    if (result != HTTP1_OK)
        return result;
    result = parse_line_end(head, &p, end);
    if (result != HTTP1_OK)
        return result;
    *cursor = p;
    return split_target(head, limits);
}

/* RFC 9112 §4; the space before an empty reason may be missing, as many servers leave it out. */
static enum http1_result parse_status_line(struct http1_head *head, const char **cursor,
                                           const char *end, const struct http1_limits *limits)
{
    const char *p = *cursor;
    enum http1_result result = parse_version(head, &p, end);
    unsigned status = 0;

    (void)limits;
    if (result != HTTP1_OK)
        return result;
    for (int i = 0; i < 4; i++, p++) {
        if (p == end)
            return HTTP1_NEED_MORE;
        if (i == 0 ? *p != ' ' : !http1_char_is(*p, HTTP1_CHAR_DIGIT))
            return http1_head_fail(head, 400, "malformed status line");
        if (i > 0)
            status = status * 10 + (unsigned)(*p - '0');
    }
    if (status < 100)
        return http1_head_fail(head, 400, "status below 100");
    head->status = (uint16_t)status;
    if (p < end && *p == ' ') {
        const char *reason = ++p;
        p = http1_find_control(p, end);
        head->reason = (struct http1_slice){reason, (size_t)(p - reason)};
    }
    result = parse_line_end(head, &p, end);
    *cursor = p;
    return result;
}

/* What is wrong with the byte at p that ended the field name beginning at `name`. */
static const char *field_name_error(const char *name, const char *p)
{
    if (p == name && http1_is_blank(*p))
        return "line folding or white space before a field";
    if (*p == ':')
        return "empty field name";
    if (http1_is_blank(*p))
        return "white space in or after a field name";
    if (*p == '\n')
        return "bare LF";
    if (*p == '\r')
        return "field line without a colon";
    return "invalid character in a field name";
}

/* One field line at *cursor, which is not the empty line: steps over it. */
static enum http1_result parse_field(struct http1_head *head, const char **cursor, const char *end)
{
    const char *p = *cursor;
    const char *name = p;

    while (p < end && http1_char_is(*p, HTTP1_CHAR_TOKEN))
        p++;
    if (p == end)
        return HTTP1_NEED_MORE;
    if (*p != ':' || p == name)
        return http1_head_fail(head, 400, field_name_error(name, p));
    const char *name_end = p++;

    while (p < end && http1_is_blank(*p))
        p++;
    const char *value = p;
    p = http1_find_control(p, end);
    const char *value_end = p;
    if (p < end && *p != '\r' && *p != '\n')
        return http1_head_fail(head, 400, "control character in a field value");
    enum http1_result result = parse_line_end(head, &p, end);
    if (result != HTTP1_OK)
        return result;
    if (head->fields_count == head->fields_max)
        return http1_head_fail(head, 431, "too many fields");

    while (value_end > value && http1_is_blank(value_end[-1]))
        value_end--;
    struct http1_field *field = &head->fields[head->fields_count++];
    field->name = (struct http1_slice){name, (size_t)(name_end - name)};
    field->value = (struct http1_slice){value, (size_t)(value_end - value)};
    enum http1_field_id id = http1_field_lookup(field->name);
    field->id = (uint8_t)id;
    field->flags = http1_field_flags(id, field->name);
    head->present |= UINT64_C(1) << id;
    *cursor = p;
    return HTTP1_OK;
}

static enum http1_result parse_fields(struct http1_head *head, const char **cursor, const char *end)
{
    const char *p = *cursor;
    enum http1_result result = HTTP1_OK;

    while (p < end && *p != '\r' && result == HTTP1_OK)
        result = parse_field(head, &p, end);
    if (result == HTTP1_OK)
        result = parse_line_end(head, &p, end);
    *cursor = p;
    return result;
}

static enum http1_result skip_blank_lines(struct http1_head *head, const char **cursor,
                                          const char *end)
{
    for (int lines = 0; *cursor < end && (**cursor == '\r' || **cursor == '\n'); lines++) {
        if (lines == HTTP1_MAX_BLANK_LINES)
            return http1_head_fail(head, 400, "too many empty lines before the request");
        enum http1_result result = parse_line_end(head, cursor, end);
        if (result != HTTP1_OK)
            return result;
    }
    return *cursor == end ? HTTP1_NEED_MORE : HTTP1_OK;
}

typedef enum http1_result (*first_line_parser)(struct http1_head *, const char **, const char *,
                                               const struct http1_limits *);

/* Parses buf[0..len), len being no more than the head may take. */
static inline enum http1_result parse_lines(const char *buf, size_t len, struct http1_scan *scan,
                                            const struct http1_limits *limits,
                                            first_line_parser parse_first_line,
                                            struct http1_head *head)
{
    const char *p = buf;
    const char *end = buf + len;
    enum http1_result result;

    if (parse_first_line == parse_request_line) {
        result = skip_blank_lines(head, &p, end);
        if (result != HTTP1_OK)
            return result;
    }
    const size_t line_room = (size_t)limits->request_line_bytes + 2;
    const bool cut = (size_t)(end - p) >= line_room;
    result = parse_first_line(head, &p, cut ? p + line_room : end, limits);
    if (result == HTTP1_NEED_MORE && cut)
        return http1_head_fail(head, 414, "request line too long");
    if (result != HTTP1_OK)
        return result;
    scan->first_line_seen = true;
    result = parse_fields(head, &p, end);
    head->head_bytes = (uint32_t)(p - buf);
    return result;
}

/* Whether the bytes that came since the last look cannot have changed its outcome. */
static bool nothing_to_do(const char *buf, size_t len, struct http1_scan *scan,
                          const struct http1_limits *limits)
{
    const size_t seen = scan->seen_bytes;

    scan->seen_bytes = (uint32_t)len;
    if (seen == 0 || len >= limits->head_bytes)
        return false;
    if (!scan->first_line_seen && len >= (size_t)limits->request_line_bytes)
        return false;
    return memchr(buf + seen, '\n', len - seen) == NULL;
}

static void reset(struct http1_head *head)
{
    struct http1_field *fields = head->fields;
    uint16_t fields_max = head->fields_max;

    *head = (struct http1_head){.fields = fields, .fields_max = fields_max};
}

static inline enum http1_result parse_head(const char *buf, size_t len, struct http1_scan *scan,
                                           const struct http1_limits *limits,
                                           first_line_parser parse_first_line,
                                           struct http1_head *head)
{
    assert(limits->head_bytes > 0 && len >= scan->seen_bytes);
    if (len == 0)
        return HTTP1_NEED_MORE;
    const bool full = len >= limits->head_bytes;
    if (full)
        len = limits->head_bytes;
    if (len > scan->seen_bytes && nothing_to_do(buf, len, scan, limits))
        return HTTP1_NEED_MORE;

    reset(head);
    enum http1_result result = parse_lines(buf, len, scan, limits, parse_first_line, head);
    if (result == HTTP1_NEED_MORE && full)
        result = http1_head_fail(head, 431, "head too large");
    return result;
}

enum http1_result http1_parse_request_head(const char *buf, size_t len, struct http1_scan *scan,
                                           const struct http1_limits *limits,
                                           struct http1_head *head)
{
    enum http1_result result = parse_head(buf, len, scan, limits, parse_request_line, head);

    return result == HTTP1_OK ? http1_request_meaning(head) : result;
}

enum http1_result http1_parse_reply_head(const char *buf, size_t len, struct http1_scan *scan,
                                         const struct http1_limits *limits,
                                         enum http1_method method, struct http1_head *head)
{
    enum http1_result result = parse_head(buf, len, scan, limits, parse_status_line, head);

    head->method = (uint8_t)method;
    if (result == HTTP1_OK)
        result = http1_reply_meaning(head);
    if (result == HTTP1_ERROR)
        head->error_status = 502;
    return result;
}

static void rebase_slice(struct http1_slice *slice, const char *from, const char *to)
{
    if (slice->ptr)
        slice->ptr = to + (slice->ptr - from);
}

void http1_head_rebase(struct http1_head *head, const char *from, const char *to)
{
    struct http1_slice *const slices[] = {&head->method_name, &head->target, &head->path,
                                          &head->query,       &head->scheme, &head->host,
                                          &head->reason};

    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
        rebase_slice(slices[i], from, to);
    for (size_t i = 0; i < head->fields_count; i++) {
        rebase_slice(&head->fields[i].name, from, to);
        rebase_slice(&head->fields[i].value, from, to);
    }
}

const struct http1_field *http1_head_find(const struct http1_head *head, enum http1_field_id id)
{
    if (!http1_head_has(head, id))
        return NULL;
    for (size_t i = 0; i < head->fields_count; i++)
        if (head->fields[i].id == id)
            return &head->fields[i];
    return NULL;
}

const struct http1_field *http1_head_find_name(const struct http1_head *head, const char *name,
                                               size_t name_len, const struct http1_field *after)
{
    const struct http1_slice wanted = {name, name_len};
    const struct http1_field *end = head->fields + head->fields_count;

    for (const struct http1_field *field = after ? after + 1 : head->fields; field < end; field++)
        if (http1_slices_match(field->name, wanted))
            return field;
    return NULL;
}
