/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a head's fields say about its message: where it ends, what becomes of the connection, whom
 * it is for (RFC 9112 §6.3, §9; RFC 9110 §7.2, §7.6.1, §7.8, §10.1.1).
 *
 * Framing is decided here and nowhere else. Whatever leaves two readings is an error.
 */
#include "protocols/http/http1_internal.h"

#include "protocols/http/http1_uri.h"

enum {
    /* Each option is compared with every field name, so their number is bounded. */
    MAX_CONNECTION_OPTIONS = 32,
};

struct connection_options {
    bool close;
    bool keep_alive;
    bool upgrade;
};

static void nominate(struct http1_head *head, struct http1_slice name)
{
    for (size_t i = 0; i < head->fields_count; i++) {
        if (http1_slices_match(head->fields[i].name, name)) {
            head->fields[i].flags |= HTTP1_FLAG_NOMINATED;
            head->has_nominated = true;
        }
    }
}

/* Options that are not tokens name no field and mean nothing: they are passed over. */
static enum http1_result read_connection(struct http1_head *head,
                                         struct connection_options *options)
{
    int count = 0;

    *options = (struct connection_options){0};
    if (!http1_head_has(head, HTTP1_FIELD_CONNECTION))
        return HTTP1_OK;
    for (size_t i = 0; i < head->fields_count; i++) {
        if (head->fields[i].id != HTTP1_FIELD_CONNECTION)
            continue;
        struct http1_slice rest = head->fields[i].value;
        struct http1_slice option;
        while (http1_next_element(&rest, &option)) {
            if (++count > MAX_CONNECTION_OPTIONS)
                return http1_head_fail(head, 400, "too many connection options");
            if (http1_slice_is(option, "keep-alive"))
                options->keep_alive = true;
            else if (http1_slice_is(option, "close"))
                options->close = true;
            else if (http1_slice_is(option, "upgrade"))
                options->upgrade = true;
            else
                nominate(head, option);
        }
    }
    return HTTP1_OK;
}

/* The only field with this id in *field, NULL if there is none; two are an error. */
static enum http1_result find_single(struct http1_head *head, enum http1_field_id id,
                                     const char *error, const struct http1_field **field)
{
    *field = http1_head_find(head, id);
    if (!*field)
        return HTTP1_OK;
    for (const struct http1_field *f = *field + 1; f < head->fields + head->fields_count; f++)
        if (f->id == id)
            return http1_head_fail(head, 400, error);
    return HTTP1_OK;
}

/* Digits only; at most INT64_MAX, so that a length is a file size everywhere. */
bool http1_parse_number(struct http1_slice text, uint64_t *number)
{
    uint64_t sum = 0;

    if (text.len == 0 || text.len > 19)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!http1_char_is(text.ptr[i], HTTP1_CHAR_DIGIT))
            return false;
        /* 19 digits stay below 2^64 */
        sum = sum * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *number = sum;
    return sum <= INT64_MAX;
}

/* Reads Content-Length and Transfer-Encoding; *chunked says whether the latter is there. */
static enum http1_result read_framing(struct http1_head *head, bool *chunked)
{
    const struct http1_field *length;
    const struct http1_field *coding;

    *chunked = false;
    if (!(head->present &
          (1ULL << HTTP1_FIELD_CONTENT_LENGTH | 1ULL << HTTP1_FIELD_TRANSFER_ENCODING)))
        return HTTP1_OK;
    if (find_single(head, HTTP1_FIELD_CONTENT_LENGTH, "repeated Content-Length", &length) ||
        find_single(head, HTTP1_FIELD_TRANSFER_ENCODING, "repeated Transfer-Encoding", &coding))
        return HTTP1_ERROR;
    if (coding) {
        if (length)
            return http1_head_fail(head, 400, "Transfer-Encoding with Content-Length");
        if (head->minor == 0)
            return http1_head_fail(head, 400, "Transfer-Encoding in HTTP/1.0");
        if (!http1_slice_is(coding->value, "chunked"))
            return http1_head_fail(head, 400, "Transfer-Encoding other than chunked");
        *chunked = true;
        return HTTP1_OK;
    }
    if (!http1_parse_number(length->value, &head->content_length))
        return http1_head_fail(head, 400, "malformed Content-Length");
    head->has_content_length = true;
    return HTTP1_OK;
}

/*
 * An upgrade to h2c is never wanted: past it the proxy would no longer see requests, only bytes.
 */
static bool upgrade_is_acceptable(const struct http1_head *head)
{
    bool any = false;

    for (size_t i = 0; i < head->fields_count; i++) {
        if (head->fields[i].id != HTTP1_FIELD_UPGRADE)
            continue;
        struct http1_slice rest = head->fields[i].value;
        struct http1_slice protocol;
        while (http1_next_element(&rest, &protocol)) {
            any = true;
            for (size_t n = 0; n < protocol.len; n++)
                if (protocol.ptr[n] == '/')
                    protocol.len = n;
            if (http1_slice_is(protocol, "h2c"))
                return false;
        }
    }
    return any;
}

static bool wants_upgrade(const struct http1_head *head, const struct connection_options *options)
{
    return options->upgrade && head->minor == 1 && http1_head_has(head, HTTP1_FIELD_UPGRADE) &&
           upgrade_is_acceptable(head);
}

static enum http1_result read_host(struct http1_head *head)
{
    const struct http1_field *host;

    if (find_single(head, HTTP1_FIELD_HOST, "repeated Host", &host))
        return HTTP1_ERROR;
    if (!host)
        return head->minor == 0 ? HTTP1_OK : http1_head_fail(head, 400, "missing Host");
    if (!http1_host_is_valid(host->value))
        return http1_head_fail(head, 400, "invalid Host");
    /* the target's authority wins over Host (RFC 9112 §3.2.2) */
    if (!head->host.ptr)
        head->host = host->value;
    return HTTP1_OK;
}

static enum http1_result read_expect(struct http1_head *head)
{
    if (!http1_head_has(head, HTTP1_FIELD_EXPECT) || head->minor == 0)
        return HTTP1_OK;
    for (size_t i = 0; i < head->fields_count; i++) {
        if (head->fields[i].id != HTTP1_FIELD_EXPECT)
            continue;
        if (!http1_slice_is(head->fields[i].value, "100-continue"))
            return http1_head_fail(head, 417, "Expect other than 100-continue");
    }
    head->expect_continue = true;
    return HTTP1_OK;
}

/*
 * RFC 9110 §7.6.2: who receives the last permitted OPTIONS or TRACE answers it; ours is that we do
 * not serve it.
 */
static enum http1_result read_max_forwards(struct http1_head *head)
{
    const struct http1_field *field = http1_head_find(head, HTTP1_FIELD_MAX_FORWARDS);
    uint64_t left;

    if (field && (head->method == HTTP1_METHOD_OPTIONS || head->method == HTTP1_METHOD_TRACE) &&
        http1_parse_number(field->value, &left) && left == 0)
        return http1_head_fail(head, 501, "Max-Forwards is used up");
    return HTTP1_OK;
}

enum http1_result http1_request_meaning(struct http1_head *head)
{
    struct connection_options options;
    bool chunked;

    if (read_host(head) || read_framing(head, &chunked) || read_expect(head) ||
        read_max_forwards(head) || read_connection(head, &options))
        return HTTP1_ERROR;
    if (chunked)
        head->framing = HTTP1_FRAMING_CHUNKED;
    else if (head->has_content_length)
        head->framing = HTTP1_FRAMING_LENGTH;
    else
        head->framing = HTTP1_FRAMING_NONE;
    head->keep_alive = !options.close && (head->minor == 1 || options.keep_alive);
    head->upgrade = !chunked && head->content_length == 0 && wants_upgrade(head, &options);
    return HTTP1_OK;
}

/* RFC 9112 §6.3, cases 1 and 2 */
static bool reply_is_bodiless(const struct http1_head *head)
{
    return head->method == HTTP1_METHOD_HEAD || head->status < 200 || head->status == 204 ||
           head->status == 304 || (head->method == HTTP1_METHOD_CONNECT && head->status < 300);
}

enum http1_result http1_reply_meaning(struct http1_head *head)
{
    struct connection_options options;
    bool chunked;

    if (read_framing(head, &chunked) || read_connection(head, &options))
        return HTTP1_ERROR;
    if (reply_is_bodiless(head))
        head->framing = HTTP1_FRAMING_NONE;
    else if (chunked)
        head->framing = HTTP1_FRAMING_CHUNKED;
    else if (head->has_content_length)
        head->framing = HTTP1_FRAMING_LENGTH;
    else
        head->framing = HTTP1_FRAMING_UNTIL_CLOSE;
    head->keep_alive = !options.close && (head->minor == 1 || options.keep_alive) &&
                       head->framing != HTTP1_FRAMING_UNTIL_CLOSE;
    head->upgrade = head->status == 101 && wants_upgrade(head, &options);
    return HTTP1_OK;
}
