/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.x message heads and bodies: bytes in, meaning out (RFC 9112, RFC 9110).
 *
 * No sockets, no allocation, no clock. A head is parsed from one contiguous buffer; every slice
 * that comes out points into that buffer and lives as long as it does. A body is decoded as it
 * streams by, again as slices of the caller's buffer.
 *
 *      bytes ──http1_parse_request_head──► struct http1_head ──► struct http1_body ──► payload
 * slices │ http1_forward.h  └──► the head for the server, written anew
 *
 * The parser is strict: what two recipients could read differently is refused, not repaired. These
 * are refused though the RFCs leave a choice:
 *   - Content-Length repeated, even with equal values; Transfer-Encoding repeated or anything but
 *     "chunked"; either of them where the other is; Transfer-Encoding in HTTP/1.0
 *   - obs-fold, bare CR, bare LF, white space before a field's colon or before the first field
 *   - an empty Host; userinfo or a comma in Host or in the target's authority
 *   - '#', white space, control characters and bytes above 0x7e in the request target
 * For requests the error carries the status to answer with; after any error the connection must
 * be closed, as the message's end is unknown.
 */
#ifndef SPILLWAY_PROTOCOLS_HTTP_HTTP1_H
#define SPILLWAY_PROTOCOLS_HTTP_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ vocabulary */

/* Bytes owned by somebody else; not NUL-terminated. Absent: ptr NULL, len 0. */
struct http1_slice {
    const char *ptr;
    size_t len;
};

/* A slice of a string literal. */
#define HTTP1_SLICE(literal) ((struct http1_slice){(literal), sizeof(literal) - 1})

/* Whether the slice equals `text`, which must be lower case, without regard to ASCII case. */
bool http1_slice_is(struct http1_slice slice, const char *text);

enum http1_result {
    HTTP1_OK,        /* a whole head was parsed */
    HTTP1_NEED_MORE, /* so far so good: call again with the same bytes and more */
    HTTP1_ERROR,     /* head->error_status and head->error_reason say what to answer and why */
};

enum http1_method {
    HTTP1_METHOD_OTHER, /* any other token: see http1_head.method_name */
    HTTP1_METHOD_GET,
    HTTP1_METHOD_HEAD,
    HTTP1_METHOD_POST,
    HTTP1_METHOD_PUT,
    HTTP1_METHOD_DELETE,
    HTTP1_METHOD_CONNECT,
    HTTP1_METHOD_OPTIONS,
    HTTP1_METHOD_TRACE,
    HTTP1_METHOD_PATCH,
    HTTP1_METHOD_COUNT
};

/* Name in upper case; "OTHER" for HTTP1_METHOD_OTHER. Static. */
const char *http1_method_name(enum http1_method method);
/* RFC 9110 §9.2.2: repeating the request has the effect of sending it once. OTHER is not. */
bool http1_method_is_idempotent(enum http1_method method);

enum http1_target_form {
    HTTP1_FORM_ORIGIN,    /* /path?query */
    HTTP1_FORM_ABSOLUTE,  /* http://authority/path?query */
    HTTP1_FORM_AUTHORITY, /* host:port, CONNECT only */
    HTTP1_FORM_ASTERISK,  /* *, OPTIONS only */
};

/* How a message's end is found. */
enum http1_framing {
    HTTP1_FRAMING_NONE,        /* no body */
    HTTP1_FRAMING_LENGTH,      /* content_length bytes */
    HTTP1_FRAMING_CHUNKED,     /* chunks and a trailer section */
    HTTP1_FRAMING_UNTIL_CLOSE, /* replies only: until the peer closes */
};

/* Fields the proxy has an opinion on. Every other name is HTTP1_FIELD_OTHER. */
enum http1_field_id {
    HTTP1_FIELD_OTHER,
    HTTP1_FIELD_AGE,
    HTTP1_FIELD_AUTHORIZATION,
    HTTP1_FIELD_CACHE_CONTROL,
    HTTP1_FIELD_CONNECTION,
    HTTP1_FIELD_CONTENT_ENCODING,
    HTTP1_FIELD_CONTENT_LENGTH,
    HTTP1_FIELD_CONTENT_RANGE,
    HTTP1_FIELD_CONTENT_TYPE,
    HTTP1_FIELD_COOKIE,
    HTTP1_FIELD_DATE,
    HTTP1_FIELD_EXPECT,
    HTTP1_FIELD_EXPIRES,
    HTTP1_FIELD_FORWARDED,
    HTTP1_FIELD_HOST,
    HTTP1_FIELD_HTTP2_SETTINGS,
    HTTP1_FIELD_KEEP_ALIVE,
    HTTP1_FIELD_LOCATION,
    HTTP1_FIELD_MAX_FORWARDS,
    HTTP1_FIELD_PROXY_AUTHENTICATE,
    HTTP1_FIELD_PROXY_AUTHORIZATION,
    HTTP1_FIELD_PROXY_CONNECTION,
    HTTP1_FIELD_RANGE,
    HTTP1_FIELD_RETRY_AFTER,
    HTTP1_FIELD_SERVER,
    HTTP1_FIELD_SET_COOKIE,
    HTTP1_FIELD_SPILLWAY_MARK,
    HTTP1_FIELD_TE,
    HTTP1_FIELD_TRACEPARENT,
    HTTP1_FIELD_TRAILER,
    HTTP1_FIELD_TRANSFER_ENCODING,
    HTTP1_FIELD_UPGRADE,
    HTTP1_FIELD_USER_AGENT,
    HTTP1_FIELD_VARY,
    HTTP1_FIELD_VIA,
    HTTP1_FIELD_WWW_AUTHENTICATE,
    HTTP1_FIELD_X_FORWARDED_FOR,
    HTTP1_FIELD_X_FORWARDED_HOST,
    HTTP1_FIELD_X_FORWARDED_PROTO,
    HTTP1_FIELD_COUNT
};
_Static_assert(HTTP1_FIELD_COUNT <= 64, "http1_head.present is a 64-bit set of field ids");

/* Why a field is not simply copied to the other side (http1_field.flags). */
enum {
    HTTP1_FLAG_HOP = 1,       /* hop-by-hop by its name (RFC 9110 §7.6.1) */
    HTTP1_FLAG_NOMINATED = 2, /* named in Connection: meant for us alone */
    HTTP1_FLAG_REWRITTEN = 4, /* we write it ourselves: Host, Content-Length, Via */
    HTTP1_FLAG_ORIGIN = 8,    /* says where a request came from: X-Forwarded-*, Forwarded */
};

struct http1_field {
    struct http1_slice name;  /* as received: any case */
    struct http1_slice value; /* without the white space around it; may be empty */
    uint8_t id;               /* enum http1_field_id */
    uint8_t flags;            /* HTTP1_FLAG_ bits */
};

struct http1_limits {
    uint32_t request_line_bytes; /* longest request or status line: 414 beyond */
    uint32_t head_bytes;         /* longest head, its empty line included: 431 beyond */
    bool allow_connect;          /* false: CONNECT is answered 501 */
};

/* 8 KiB and 64 KiB, no CONNECT. */
extern const struct http1_limits http1_default_limits;

/* ------------------------------------------------------------------ heads */

/*
 * How far one head has been looked at. Zero it for every new message; keep it between calls that
 * said HTTP1_NEED_MORE. With it a head that arrives byte by byte is parsed once per line.
 */
struct http1_scan {
    uint32_t seen_bytes;
    bool first_line_seen;
};

/*
 * A parsed head. The caller sets `fields` and `fields_max` (http1_head_init); the parser fills in
 * the rest, and only HTTP1_OK makes it meaningful (after HTTP1_ERROR: only error_*).
 */
struct http1_head {
    struct http1_field *fields;
    uint16_t fields_max; /* more fields than this: 431 */
    uint16_t fields_count;

    uint8_t minor; /* HTTP version 1.minor: 0 or 1; higher minors are taken as 1 */
    /* enums are stored as small integers to keep the struct within few cache lines */
    uint8_t method;          /* enum http1_method; for replies: of the request answered */
    uint8_t form;            /* enum http1_target_form */
    uint8_t framing;         /* enum http1_framing */
    uint16_t status;         /* replies: 100..999; requests: 0 */
    bool keep_alive;         /* the sender allows another message on this connection */
    bool expect_continue;    /* requests: Expect: 100-continue, from HTTP/1.1 only */
    bool upgrade;            /* request asks for, or 101 reply makes, a change of protocol; never
                                to h2c, nor by a request that has a body */
    bool has_content_length; /* also with FRAMING_NONE: replies to HEAD, 304 */
    bool has_nominated;      /* at least one field has HTTP1_FLAG_NOMINATED */

    uint32_t head_bytes;     /* bytes of the buffer taken, the empty line included */
    uint64_t content_length; /* at most INT64_MAX */
    uint64_t present;        /* set of enum http1_field_id seen: bit 1 << id */

    /* requests */
    struct http1_slice method_name;
    struct http1_slice target; /* as received */
    struct http1_slice path;   /* before '?'; empty in absolute-form means "/" (OPTIONS: "*") */
    struct http1_slice query;  /* after '?'; ptr NULL when there is no '?' */
    struct http1_slice scheme; /* absolute-form only: "http" or "https", any case */
    struct http1_slice host;   /* whom the request is for: the target's authority, else Host;
                                  validated "name", "name:port" or "[v6]:port", any case;
                                  absent only in HTTP/1.0 */
    /* replies */
    struct http1_slice reason; /* may be empty */

    uint16_t error_status;    /* requests: 400, 414, 417, 431, 501, 505; replies: 502 */
    const char *error_reason; /* static; for logs and for the answer's text */
};

/* Gives the head its field array; `fields` must outlive it. */
void http1_head_init(struct http1_head *head, struct http1_field *fields, uint16_t fields_max);

/*
 * Parses the request head at the start of buf[0..len). Up to HTTP1_MAX_BLANK_LINES empty lines
 * before it are skipped (RFC 9112 §2.2). On HTTP1_NEED_MORE the caller keeps the bytes and calls
 * again with at least one more, possibly at another address. A line that arrives in pieces may be
 * found wrong only when its end is there.
 */
enum http1_result http1_parse_request_head(const char *buf, size_t len, struct http1_scan *scan,
                                           const struct http1_limits *limits,
                                           struct http1_head *head);
#define HTTP1_MAX_BLANK_LINES 4

/*
 * Parses a reply head. `method` is that of the request it answers: it decides, with the status,
 * whether a body follows (RFC 9112 §6.3). An interim reply (1xx) is a reply of its own, without a
 * body: parse again after it. Every error says 502.
 */
enum http1_result http1_parse_reply_head(const char *buf, size_t len, struct http1_scan *scan,
                                         const struct http1_limits *limits,
                                         enum http1_method method, struct http1_head *head);

/* Corrects every slice after the bytes parsed were moved from `from` to `to`. */
void http1_head_rebase(struct http1_head *head, const char *from, const char *to);

/* The first field with this id, NULL if there is none. Cheap when absent. */
const struct http1_field *http1_head_find(const struct http1_head *head, enum http1_field_id id);
/* The first field with this name (lower case), from `after` (NULL: the first) on. */
const struct http1_field *http1_head_find_name(const struct http1_head *head, const char *name,
                                               size_t name_len, const struct http1_field *after);

static inline bool http1_head_has(const struct http1_head *head, enum http1_field_id id)
{
    return (head->present >> id) & 1;
}

/* ------------------------------------------------------------------ bodies */

enum http1_body_result {
    HTTP1_BODY_DATA,  /* *payload holds the next piece; call again with what is left */
    HTTP1_BODY_MORE,  /* all of the input was consumed, the body goes on */
    HTTP1_BODY_DONE,  /* the body has ended; bytes not consumed belong to the next message */
    HTTP1_BODY_ERROR, /* body->error_reason; answer 400 (a server's body: 502) if that can still
                         be answered, and close */
};

/*
 * One body on its way. Read `payload_bytes`; everything else is the decoder's own.
 * Chunk extensions are checked and dropped. Trailer fields are checked; those that may be passed
 * on are kept if the caller gave a place for them.
 */
struct http1_body {
    uint8_t framing; /* enum http1_framing */
    uint8_t state;
    uint8_t digits;          /* hex digits of the chunk size so far */
    uint32_t overhead_bytes; /* of this chunk line or of the trailer section */
    uint64_t left_bytes;     /* of the content, or of this chunk */
    uint64_t payload_bytes;  /* delivered so far */
    const char *error_reason;
    char *trailers;              /* accepted trailer lines, "name: value\r\n" each */
    uint32_t trailers_max_bytes; /* room in trailers */
    uint32_t trailers_bytes;     /* of whole, accepted lines */
    uint32_t line_bytes;         /* of the line being collected, behind those */
    uint32_t name_bytes;         /* of its name; 0 until the colon has come */
};

#define HTTP1_MAX_CHUNK_LINE_BYTES 512 /* size, extensions, CRLF */
#define HTTP1_MAX_TRAILER_BYTES    8192

void http1_body_init_none(struct http1_body *body);
void http1_body_init_length(struct http1_body *body, uint64_t length);
void http1_body_init_chunked(struct http1_body *body);
void http1_body_init_until_close(struct http1_body *body);
/* The body that a parsed head announces. */
void http1_body_init(struct http1_body *body, const struct http1_head *head);

/*
 * Keeps the trailer fields that may be forwarded (RFC 9110 §6.5.1: none about framing, routing,
 * authentication or the content's meaning) as body->trailers[0..trailers_bytes), ready to be sent
 * between the last chunk and the final empty line. `room` must be HTTP1_MAX_TRAILER_BYTES or more.
 */
void http1_body_keep_trailers(struct http1_body *body, char *buf, uint32_t room);

/*
 * Takes the next step over buf[0..len). *consumed is set always; *payload only with
 * HTTP1_BODY_DATA, and is then never empty. Payload bytes are part of *consumed.
 *
 *      while ((r = http1_body_next(&body, p, n, &used, &piece)) == HTTP1_BODY_DATA)
 *          p += used, n -= used, deliver(piece);
 *      p += used, n -= used;
 */
enum http1_body_result http1_body_next(struct http1_body *body, const char *buf, size_t len,
                                       size_t *consumed, struct http1_slice *payload);

/* Whether the body is over without another byte. */
bool http1_body_is_done(const struct http1_body *body);

/* The peer closed: HTTP1_BODY_DONE if that ends the body rightly, else HTTP1_BODY_ERROR. */
enum http1_body_result http1_body_eof(struct http1_body *body);

#endif
