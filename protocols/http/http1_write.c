/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing HTTP/1.1 into bounded buffers, and replies of our own (http1_write.h).
 */
#include "protocols/http/http1_write.h"

#include <stdio.h>

void http1_write_decimal(struct http1_writer *w, uint64_t number)
{
    char digits[20];
    char *p = digits + sizeof(digits);

    do {
        *--p = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    http1_write(w, p, (size_t)(digits + sizeof(digits) - p));
}

void http1_write_request_line(struct http1_writer *w, struct http1_slice method,
                              struct http1_slice target)
{
    http1_write_slice(w, method);
    http1_write_literal(w, " ");
    http1_write_slice(w, target);
    http1_write_literal(w, " HTTP/1.1\r\n");
}

void http1_write_status_line(struct http1_writer *w, unsigned status, struct http1_slice reason)
{
    const char line[] = {'H',
                         'T',
                         'T',
                         'P',
                         '/',
                         '1',
                         '.',
                         '1',
                         ' ',
                         (char)('0' + status / 100 % 10),
                         (char)('0' + status / 10 % 10),
                         (char)('0' + status % 10),
                         ' '};

    if (reason.len == 0) {
        const char *phrase = http1_reason_phrase(status);
        reason = (struct http1_slice){phrase, strlen(phrase)};
    }
    http1_write(w, line, sizeof(line));
    http1_write_slice(w, reason);
    http1_write_literal(w, "\r\n");
}

void http1_write_field(struct http1_writer *w, struct http1_slice name, struct http1_slice value)
{
    const size_t len = name.len + value.len + 4;

    if ((size_t)(w->end - w->p) < len || w->overflow) {
        w->overflow = true;
        return;
    }
    char *p = w->p;
    memcpy(p, name.ptr, name.len);
    p += name.len;
    *p++ = ':';
    *p++ = ' ';
    if (value.len)
        memcpy(p, value.ptr, value.len);
    p += value.len;
    *p++ = '\r';
    *p++ = '\n';
    w->p = p;
}

void http1_write_chunk_header(struct http1_writer *w, uint64_t payload_bytes)
{
    static const char hex[] = "0123456789abcdef";
    char line[HTTP1_CHUNK_HEADER_MAX];
    char *p = line + sizeof(line);

    *--p = '\n';
    *--p = '\r';
    do {
        *--p = hex[payload_bytes & 15];
        payload_bytes >>= 4;
    } while (payload_bytes);
    http1_write(w, p, (size_t)(line + sizeof(line) - p));
}

void http1_write_last_chunk(struct http1_writer *w, struct http1_slice trailers)
{
    http1_write_literal(w, "0\r\n");
    http1_write_slice(w, trailers);
    http1_write_literal(w, "\r\n");
}

/* The statuses of the IANA registry that a proxy, an array or a web farm is likely to meet. */
static const struct {
    uint16_t status;
    const char *phrase;
} phrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {511, "Network Authentication Required"},
};

const char *http1_reason_phrase(unsigned status)
{
    size_t low = 0;
    size_t high = sizeof(phrases) / sizeof(phrases[0]);

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (phrases[middle].status == status)
            return phrases[middle].phrase;
        if (phrases[middle].status < status)
            low = middle + 1;
        else
            high = middle;
    }
    return "";
}

void http1_write_mark(struct http1_writer *w, uint32_t mark_ms)
{
    if (mark_ms == 0)
        return;
    http1_write_literal(w, "Spillway-Mark: ");
    http1_write_decimal(w, mark_ms);
    http1_write_end(w);
}

void http1_write_error_reply(struct http1_writer *w, const struct http1_error_reply *reply)
{
    char title[64];
    const int title_len =
        snprintf(title, sizeof(title), "%u %s", reply->status, http1_reason_phrase(reply->status));
    const size_t explanation_len = strlen(reply->explanation);

    http1_write_status_line(w, reply->status, (struct http1_slice){NULL, 0});
    http1_write_literal(w, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
    http1_write_decimal(w, (size_t)title_len + 2 + explanation_len + 1);
    http1_write_literal(w, "\r\nCache-Control: no-store\r\n");
    if (reply->retry_after_s) {
        http1_write_literal(w, "Retry-After: ");
        http1_write_decimal(w, reply->retry_after_s);
        http1_write_end(w);
    }
    http1_write_mark(w, reply->mark_ms);
    if (reply->close)
        http1_write_literal(w, "Connection: close\r\n");
    else if (reply->client_minor == 0)
        http1_write_literal(w, "Connection: keep-alive\r\n");
    http1_write_end(w);
    if (reply->head_request)
        return;
    http1_write(w, title, (size_t)title_len);
    http1_write_literal(w, ": ");
    http1_write(w, reply->explanation, explanation_len);
    http1_write_literal(w, "\n");
}
