/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads for the other side, by an intermediary's rules (http1_forward.h).
 *
 * Invariant: a field goes over only by passing one test on its flags. What we add comes after, so
 * nothing that a peer nominated in Connection can take it away again.
 */
#include "protocols/http/http1_forward.h"

#include "protocols/http/http1_internal.h"

/* Flags that keep a field from being copied. */
enum {
    NEVER_COPIED = HTTP1_FLAG_HOP | HTTP1_FLAG_NOMINATED | HTTP1_FLAG_REWRITTEN,
};

static const char *version_text(const struct http1_head *head)
{
    return head->minor ? "1.1 " : "1.0 ";
}

/* "Name: " and every value already there that was not nominated, each with ", " behind it. */
static void begin_list(struct http1_writer *w, const struct http1_head *head, const char *name,
                       size_t name_len, enum http1_field_id id)
{
    http1_write(w, name, name_len);
    if (!http1_head_has(head, id))
        return;
    for (size_t i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->id != id || field->value.len == 0 || (field->flags & HTTP1_FLAG_NOMINATED))
            continue;
        http1_write_slice(w, field->value);
        http1_write_literal(w, ", ");
    }
}

static void write_via(struct http1_writer *w, const struct http1_head *head,
                      struct http1_slice pseudonym)
{
    begin_list(w, head, "Via: ", 5, HTTP1_FIELD_VIA);
    http1_write(w, version_text(head), 4);
    http1_write_slice(w, pseudonym);
    http1_write_end(w);
}

static void write_length(struct http1_writer *w, uint64_t length)
{
    http1_write_literal(w, "Content-Length: ");
    http1_write_decimal(w, length);
    http1_write_end(w);
}

static void write_upgrade(struct http1_writer *w, const struct http1_head *head)
{
    const struct http1_field *upgrade = http1_head_find(head, HTTP1_FIELD_UPGRADE);

    http1_write_literal(w, "Connection: upgrade\r\n");
    http1_write_field(w, HTTP1_SLICE("Upgrade"), upgrade->value);
}

/* RFC 9112 §3.2.1: origin-form; §3.2.4: "*" for OPTIONS on the whole server */
static void write_target(struct http1_writer *w, const struct http1_head *head)
{
    if (head->form != HTTP1_FORM_ABSOLUTE) {
        http1_write_slice(w, head->target);
        return;
    }
    if (head->path.len)
        http1_write_slice(w, head->path);
    else if (head->method == HTTP1_METHOD_OPTIONS && !head->query.ptr)
        http1_write_literal(w, "*");
    else
        http1_write_literal(w, "/");
    if (head->query.ptr) {
        http1_write_literal(w, "?");
        http1_write_slice(w, head->query);
    }
}

/* RFC 9110 §7.6.2: one less for OPTIONS and TRACE; the parser let no 0 through. */
static void write_max_forwards(struct http1_writer *w, const struct http1_head *head,
                               const struct http1_field *field)
{
    uint64_t left;

    if ((head->method != HTTP1_METHOD_OPTIONS && head->method != HTTP1_METHOD_TRACE) ||
        !http1_parse_number(field->value, &left)) {
        http1_write_field(w, field->name, field->value);
        return;
    }
    http1_write_literal(w, "Max-Forwards: ");
    http1_write_decimal(w, left ? left - 1 : 0);
    http1_write_end(w);
}

static void copy_request_fields(struct http1_writer *w, const struct http1_head *head, bool trusted)
{
    const unsigned dropped = NEVER_COPIED | (trusted ? 0U : HTTP1_FLAG_ORIGIN);

    for (size_t i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (field->flags & dropped)
            continue;
        /* lists that we continue ourselves */
        if (field->id == HTTP1_FIELD_X_FORWARDED_FOR || field->id == HTTP1_FIELD_FORWARDED)
            continue;
        /* an HTTP/1.0 client's Expect means nothing, but would in our HTTP/1.1 */
        if (field->id == HTTP1_FIELD_EXPECT && !head->expect_continue)
            continue;
        if (field->id == HTTP1_FIELD_MAX_FORWARDS)
            write_max_forwards(w, head, field);
        else
            http1_write_field(w, field->name, field->value);
    }
}

/* A field the client's proxy has set and we may believe, so we do not set it. */
static bool is_vouched_for(const struct http1_head *head, enum http1_field_id id, bool trusted)
{
    const struct http1_field *field = trusted ? http1_head_find(head, id) : NULL;

    return field && !(field->flags & HTTP1_FLAG_NOMINATED);
}

/* One element of Forwarded (RFC 7239 §4). An address with colons is quoted and in brackets. */
static void write_forwarded_element(struct http1_writer *w, const struct http1_head *head,
                                    const struct http1_forward_request *how)
{
    const struct http1_slice client = how->client_address;
    const struct http1_slice host = head->host;
    bool token = true;

    if (client.len == 0) {
        http1_write_literal(w, "for=unknown");
    } else if (memchr(client.ptr, ':', client.len)) {
        http1_write_literal(w, "for=\"[");
        http1_write_slice(w, client);
        http1_write_literal(w, "]\"");
    } else {
        http1_write_literal(w, "for=");
        http1_write_slice(w, client);
    }
    if (host.len) {
        for (size_t i = 0; i < host.len && token; i++)
            token = http1_char_is(host.ptr[i], HTTP1_CHAR_TOKEN);
        http1_write_literal(w, ";host=");
        if (!token)
            http1_write_literal(w, "\"");
        http1_write_slice(w, host);
        if (!token)
            http1_write_literal(w, "\"");
    }
    http1_write_literal(w, ";proto=");
    http1_write_slice(w, how->scheme);
    http1_write_end(w);
}

static void write_origin_fields(struct http1_writer *w, const struct http1_head *head,
                                const struct http1_forward_request *how)
{
    static const struct http1_head nobody;
    const struct http1_head *before = how->trust_client ? head : &nobody;
    const bool trusted = how->trust_client;

    begin_list(w, before, "X-Forwarded-For: ", 17, HTTP1_FIELD_X_FORWARDED_FOR);
    http1_write_slice(w, how->client_address.len ? how->client_address : HTTP1_SLICE("unknown"));
    http1_write_end(w);
    if (!is_vouched_for(head, HTTP1_FIELD_X_FORWARDED_PROTO, trusted))
        http1_write_field(w, HTTP1_SLICE("X-Forwarded-Proto"), how->scheme);
    if (head->host.len && !is_vouched_for(head, HTTP1_FIELD_X_FORWARDED_HOST, trusted))
        http1_write_field(w, HTTP1_SLICE("X-Forwarded-Host"), head->host);
    begin_list(w, before, "Forwarded: ", 11, HTTP1_FIELD_FORWARDED);
    write_forwarded_element(w, head, how);
}

void http1_write_forward_request(struct http1_writer *w, const struct http1_head *head,
                                 const struct http1_forward_request *how)
{
    http1_write_slice(w, head->method_name);
    http1_write_literal(w, " ");
    write_target(w, head);
    http1_write_literal(w, " HTTP/1.1\r\n");
    http1_write_field(w, HTTP1_SLICE("Host"), head->host.len ? head->host : how->default_host);
    copy_request_fields(w, head, how->trust_client);
    write_origin_fields(w, head, how);
    write_via(w, head, how->via);
    if (head->framing == HTTP1_FRAMING_LENGTH)
        write_length(w, head->content_length);
    else if (head->framing == HTTP1_FRAMING_CHUNKED)
        http1_write_literal(w, "Transfer-Encoding: chunked\r\n");
    if (how->pass_upgrade && head->upgrade)
        write_upgrade(w, head);
    http1_write_end(w);
}

struct http1_reply_plan http1_plan_reply(const struct http1_head *head,
                                         const struct http1_forward_reply *how)
{
    struct http1_reply_plan plan = {
        .framing = (enum http1_framing)head->framing,
        .keep_alive = how->keep_alive,
    };

    if (plan.framing == HTTP1_FRAMING_CHUNKED || plan.framing == HTTP1_FRAMING_UNTIL_CLOSE) {
        if (how->client_minor == 0) {
            plan.framing = HTTP1_FRAMING_UNTIL_CLOSE;
            plan.keep_alive = false;
        } else {
            plan.framing = HTTP1_FRAMING_CHUNKED;
        }
    }
    return plan;
}

static void write_reply_framing(struct http1_writer *w, const struct http1_head *head,
                                enum http1_framing framing)
{
    /* RFC 9110 §8.6: no Content-Length on 1xx and 204, nor on 2xx to CONNECT */
    const bool may_say_length = head->status >= 200 && head->status != 204 &&
                                (head->method != HTTP1_METHOD_CONNECT || head->status >= 300);

    if (framing == HTTP1_FRAMING_CHUNKED)
        http1_write_literal(w, "Transfer-Encoding: chunked\r\n");
    else if (head->has_content_length && may_say_length)
        write_length(w, head->content_length);
}

struct http1_reply_plan http1_write_forward_reply(struct http1_writer *w,
                                                  const struct http1_head *head,
                                                  const struct http1_forward_reply *how)
{
    const struct http1_reply_plan plan = http1_plan_reply(head, how);

    http1_write_status_line(w, head->status, head->reason);
    for (size_t i = 0; i < head->fields_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (!(field->flags & NEVER_COPIED))
            http1_write_field(w, field->name, field->value);
    }
    write_via(w, head, how->via);
    write_reply_framing(w, head, plan.framing);
    if (head->status >= 200)
        http1_write_mark(w, how->mark_ms);
    if (head->upgrade)
        write_upgrade(w, head);
    else if (head->status < 200)
        ;
    else if (!plan.keep_alive)
        http1_write_literal(w, "Connection: close\r\n");
    else if (how->client_minor == 0)
        http1_write_literal(w, "Connection: keep-alive\r\n");
    http1_write_end(w);
    return plan;
}
