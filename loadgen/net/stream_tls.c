/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS below a stream: OpenSSL between two pieces of memory.
 *
 * What was received lies in one buffer that all streams share while OpenSSL reads it (wire_read);
 * what OpenSSL writes is gathered per stream (wire_write) and sent with one call.
 */
#include "loadgen/net/stream_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"
#include "loadgen/net/stream_private.h"

#define RECORD_BYTES (16U * 1024)
/* What OpenSSL may have kept of a record that was not there as a whole. */
#define PARTIAL_BYTES (RECORD_BYTES + 512)
/* Encrypted in one go; more waits in the stream's output. */
#define SEND_PLAIN_BYTES (8 * RECORD_BYTES)

struct stream_tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *wire;
    SSL_SESSION *session; /* of the last handshake; NULL: none so far */
    char *server_name;
    bool name_is_address;
    char *protocol;
    bool protocol_required;
};

struct stream_tls {
    struct stream_tls_context *context;
    SSL *ssl;
    bool ended;        /* the peer said goodbye */
    const uint8_t *in; /* received, not yet taken by OpenSSL */
    size_t in_bytes;
    uint8_t *out; /* records to be sent */
    size_t out_start;
    size_t out_bytes;
    size_t out_capacity;
    char refused[160]; /* subject of a certificate */
    char problem[STREAM_TLS_PROBLEM_BYTES];
};

static uint8_t received[STREAM_RECEIVE_BYTES - PARTIAL_BYTES];

/* ---------------------------------------------------------------- the wire, as OpenSSL sees it */

static int wire_read(BIO *bio, char *to, int length)
{
    struct stream_tls *tls = BIO_get_data(bio);
    size_t part = tls->in_bytes < (size_t)length ? tls->in_bytes : (size_t)length;

    BIO_clear_retry_flags(bio);
    if (part == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, tls->in, part);
    tls->in += part;
    tls->in_bytes -= part;
    return (int)part;
}

static int wire_write(BIO *bio, const char *data, int length)
{
    struct stream_tls *tls = BIO_get_data(bio);
    size_t wanted = tls->out_start + tls->out_bytes + (size_t)length;

    BIO_clear_retry_flags(bio);
    if (wanted > tls->out_capacity) {
        tls->out_capacity = wanted < 4096 ? 4096 : 2 * wanted;
        tls->out = memory_grow(tls->out, tls->out_capacity);
    }
    memcpy(tls->out + tls->out_start + tls->out_bytes, data, (size_t)length);
    tls->out_bytes += (size_t)length;
    return length;
}

static long wire_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int wire_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

/* ---------------------------------------------------------------- contexts */

/* The session of the last handshake is kept, as servers of TLS 1.3 hand out tickets after it. */
static int session_made(SSL *ssl, SSL_SESSION *session)
{
    struct stream_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    SSL_SESSION_free(context->session);
    context->session = session;
    return 1;
}

static const char *openssl_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    return reason ? reason : "unknown reason";
}

/* Keeps the subject of a certificate that is not accepted: it is gone when the handshake failed. */
static int certificate_checked(int accepted, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct stream_tls *tls = SSL_get_app_data(ssl);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);

    if (!accepted && certificate)
        X509_NAME_oneline(X509_get_subject_name(certificate), tls->refused, sizeof(tls->refused));
    return accepted;
}

static bool trust(SSL_CTX *ssl, const struct stream_tls_options *options,
                  char problem[STREAM_TLS_PROBLEM_BYTES])
{
    if (options->unverified) {
        SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        return true;
    }
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, certificate_checked);
    if (!options->ca_path || !options->ca_path[0]) {
        SSL_CTX_set_default_verify_paths(ssl);
        return true;
    }
    if (SSL_CTX_load_verify_file(ssl, options->ca_path))
        return true;
    snprintf(problem, STREAM_TLS_PROBLEM_BYTES,
             "%.300s holds no certificates that could be read (%s): it must be a PEM file of the "
             "authorities to trust",
             options->ca_path, openssl_reason());
    return false;
}

static bool want_protocol(SSL_CTX *ssl, const char *protocol)
{
    uint8_t list[256];
    size_t length = protocol ? strlen(protocol) : 0;

    if (length == 0 || length > 255)
        return length == 0;
    list[0] = (uint8_t)length;
    memcpy(list + 1, protocol, length);
    return SSL_CTX_set_alpn_protos(ssl, list, (unsigned)length + 1) == 0;
}

static bool is_address(const char *name)
{
    uint8_t address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

struct stream_tls_context *stream_tls_context_create(const struct stream_tls_options *options,
                                                     char problem[STREAM_TLS_PROBLEM_BYTES])
{
    struct stream_tls_context *context = memory_zeroed(1, sizeof(*context));

    ERR_clear_error();
    context->server_name = memory_string(options->server_name ? options->server_name : "");
    context->name_is_address = is_address(context->server_name);
    context->protocol = memory_string(options->protocol ? options->protocol : "");
    context->protocol_required = options->protocol_required;
    context->ssl = SSL_CTX_new(TLS_client_method());
    context->wire = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    if (!context->ssl || !context->wire || !want_protocol(context->ssl, options->protocol)) {
        snprintf(problem, STREAM_TLS_PROBLEM_BYTES, "OpenSSL could not be set up: %s",
                 openssl_reason());
        goto failed;
    }
    if (!trust(context->ssl, options, problem))
        goto failed;
    BIO_meth_set_create(context->wire, wire_create);
    BIO_meth_set_read(context->wire, wire_read);
    BIO_meth_set_write(context->wire, wire_write);
    BIO_meth_set_ctrl(context->wire, wire_control);
    SSL_CTX_set_app_data(context->ssl, context);
    SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context->ssl,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context->ssl, session_made);
    return context;
failed:
    stream_tls_context_destroy(context);
    return NULL;
}

void stream_tls_context_destroy(struct stream_tls_context *context)
{
    if (!context)
        return;
    SSL_SESSION_free(context->session);
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->wire);
    free(context->server_name);
    free(context->protocol);
    free(context);
}

/* ---------------------------------------------------------------- connections */

static void out_of_memory(void)
{
    fprintf(stderr, "spillload: out of memory for TLS connections: use fewer of them\n");
    exit(3);
}

static struct stream_tls *tls_create(struct stream_tls_context *context)
{
    struct stream_tls *tls = memory_zeroed(1, sizeof(*tls));
    BIO *bio = BIO_new(context->wire);

    tls->context = context;
    tls->ssl = SSL_new(context->ssl);
    if (!bio || !tls->ssl)
        out_of_memory();
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_app_data(tls->ssl, tls);
    SSL_set_connect_state(tls->ssl);
    if (context->name_is_address)
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), context->server_name);
    else if (context->server_name[0] && (!SSL_set1_host(tls->ssl, context->server_name) ||
                                         !SSL_set_tlsext_host_name(tls->ssl, context->server_name)))
        out_of_memory();
    if (context->session)
        SSL_set_session(tls->ssl, context->session);
    return tls;
}

void stream_connect_tls(struct stream *stream, struct loop *loop, const struct sockaddr *address,
                        socklen_t length, const struct stream_handler *handler,
                        struct stream_tls_context *context)
{
    stream_connect(stream, loop, address, length, handler);
    stream->tls = tls_create(context);
}

void stream_tls_fini(struct stream *stream)
{
    struct stream_tls *tls = stream->tls;

    /* Else OpenSSL takes an end without goodbye for a reason to forget the session. */
    SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(tls->ssl);
    free(tls->out);
    free(tls);
    stream->tls = NULL;
}

const char *stream_tls_problem(const struct stream *stream)
{
    return stream->tls ? stream->tls->problem : "";
}

bool stream_tls_resumed(const struct stream *stream)
{
    return stream->tls && SSL_session_reused(stream->tls->ssl);
}

/* ---------------------------------------------------------------- problems */

/* What the user can do about a certificate that was not accepted. */
static const char *advice(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "renew it, or compare this host's clock with the server's";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "name the server as its certificate does (server-name)";
    default:
        return "name a file of certificates to trust (tls-ca), or take any (tls-verify=no)";
    }
}

static void explain_certificate(struct stream_tls *tls, long verdict)
{
    snprintf(tls->problem, sizeof(tls->problem),
             "the server's certificate (%s) is not accepted for \"%.120s\": %s; %s", tls->refused,
             tls->context->server_name, X509_verify_cert_error_string(verdict), advice(verdict));
}

static void explain_protocol(struct stream_tls *tls)
{
    snprintf(tls->problem, sizeof(tls->problem),
             "the server does not offer %.60s over TLS (ALPN): enable it there or ask for another "
             "protocol",
             tls->context->protocol);
}

/* Notes why OpenSSL gave up; returns the errno that stands for it. */
static int explain(struct stream_tls *tls)
{
    long verdict = SSL_get_verify_result(tls->ssl);

    if (verdict != X509_V_OK && !SSL_is_init_finished(tls->ssl) &&
        SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE)
        explain_certificate(tls, verdict);
    else if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
        explain_protocol(tls);
    else if (!SSL_is_init_finished(tls->ssl))
        snprintf(tls->problem, sizeof(tls->problem),
                 "the TLS handshake failed: %s; does the server speak TLS on this port?",
                 openssl_reason());
    else
        snprintf(tls->problem, sizeof(tls->problem), "the TLS connection broke: %s",
                 openssl_reason());
    return EPROTO;
}

bool stream_tls_established(struct stream *stream)
{
    struct stream_tls *tls = stream->tls;
    const char *wanted = tls->context->protocol;
    const unsigned char *chosen;
    unsigned length;

    if (!SSL_is_init_finished(tls->ssl))
        return false;
    SSL_get0_alpn_selected(tls->ssl, &chosen, &length);
    if (tls->context->protocol_required &&
        (length != strlen(wanted) || memcmp(chosen, wanted, length) != 0)) {
        explain_protocol(tls);
        stream_close(stream, EPROTO);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- input */

/* Everything that OpenSSL makes of what was received. -1 with errno when it breaks. */
static ssize_t decrypt(struct stream *stream, uint8_t *to, size_t room)
{
    struct stream_tls *tls = stream->tls;
    size_t total = 0;

    for (;;) {
        size_t got = 0;

        /* A full `to` can't be with input left: it has room for all of it. */
        ERR_clear_error();
        if (total < room && SSL_read_ex(tls->ssl, to + total, room - total, &got) == 1) {
            total += got;
            continue;
        }
        if (total == room)
            return (ssize_t)total;
        switch (SSL_get_error(tls->ssl, 0)) {
        case SSL_ERROR_WANT_READ:
            return (ssize_t)total;
        case SSL_ERROR_ZERO_RETURN:
            tls->ended = true;
            return (ssize_t)total;
        default:
            tls->in_bytes = 0;
            errno = explain(tls);
            return -1;
        }
    }
}

/* Sends what records there are. False after an error that ends the connection (errno). */
static bool send_records(struct stream *stream)
{
    struct stream_tls *tls = stream->tls;

    while (tls->out_bytes > 0 && stream->writable) {
        ssize_t sent = send(stream->io.fd, tls->out + tls->out_start, tls->out_bytes, MSG_NOSIGNAL);

        if (sent < 0) {
            if (errno == EINTR)
                continue;
            stream->writable = false;
            return errno == EAGAIN;
        }
        if ((size_t)sent < tls->out_bytes)
            stream->writable = false;
        tls->out_start += (size_t)sent;
        tls->out_bytes -= (size_t)sent;
    }
    if (tls->out_bytes == 0)
        tls->out_start = 0;
    return true;
}

/* The end of the bytes, which is only in order after a goodbye. */
static ssize_t ended(struct stream_tls *tls)
{
    if (tls->ended)
        return 0;
    if (!SSL_is_init_finished(tls->ssl))
        snprintf(tls->problem, sizeof(tls->problem),
                 "the server closed the connection during the TLS handshake");
    errno = ECONNRESET;
    return -1;
}

ssize_t stream_tls_receive(struct stream *stream, uint8_t *to, size_t room)
{
    struct stream_tls *tls = stream->tls;
    size_t wanted =
        room - PARTIAL_BYTES < sizeof(received) ? room - PARTIAL_BYTES : sizeof(received);

    if (tls->ended)
        return 0;
    ssize_t got = recv(stream->io.fd, received, wanted, 0);

    if (got < 0 ? errno != EINTR : (size_t)got < wanted && !stream->hung_up)
        stream->readable = false;
    if (got < 0)
        return -1;
    if (got == 0)
        return ended(tls);
    tls->in = received;
    tls->in_bytes = (size_t)got;
    ssize_t plain = decrypt(stream, to, room);
    int error = errno;

    /* The handshake's next step, an alert, an answer to a change of keys. */
    if (!send_records(stream) && plain >= 0)
        return -1;
    if (plain == 0 && !tls->ended) {
        errno = EAGAIN;
        return -1;
    }
    /* The goodbye that came behind these bytes is found at the next call. */
    if (plain > 0 && tls->ended)
        stream->readable = true;
    errno = error;
    return plain;
}

/* ---------------------------------------------------------------- output */

void stream_tls_start(struct stream *stream)
{
    ERR_clear_error();
    if (SSL_do_handshake(stream->tls->ssl) != 1 &&
        SSL_get_error(stream->tls->ssl, -1) != SSL_ERROR_WANT_READ) {
        stream_close(stream, explain(stream->tls));
        return;
    }
    if (!send_records(stream))
        stream_close(stream, errno);
}

bool stream_tls_unsent(const struct stream *stream)
{
    return stream->tls->out_bytes > 0;
}

/* Up to a record's worth from the vectors on; moves them on. */
static size_t take_record(const struct iovec **vector, size_t *count, size_t *offset,
                          uint8_t record[RECORD_BYTES])
{
    size_t length = 0;

    while (*count > 0 && length < RECORD_BYTES) {
        size_t part = (*vector)->iov_len - *offset;

        part = part < RECORD_BYTES - length ? part : RECORD_BYTES - length;
        memcpy(record + length, (const uint8_t *)(*vector)->iov_base + *offset, part);
        length += part;
        *offset += part;
        if (*offset == (*vector)->iov_len) {
            (*vector)++;
            (*count)--;
            *offset = 0;
        }
    }
    return length;
}

ssize_t stream_tls_send(struct stream *stream, const struct iovec *vectors, size_t count,
                        size_t bytes)
{
    struct stream_tls *tls = stream->tls;
    uint8_t record[RECORD_BYTES];
    size_t offset = 0;
    size_t total = 0;

    if (!send_records(stream))
        return -1;
    if (tls->out_bytes > 0 || (bytes > 0 && !SSL_is_init_finished(tls->ssl))) {
        errno = EAGAIN;
        return -1;
    }
    while (total < bytes && total < SEND_PLAIN_BYTES) {
        size_t length = take_record(&vectors, &count, &offset, record);
        size_t written = 0;

        ERR_clear_error();
        if (SSL_write_ex(tls->ssl, record, length, &written) != 1) {
            errno = explain(tls);
            return -1;
        }
        total += length;
    }
    return send_records(stream) ? (ssize_t)total : -1;
}

void stream_tls_goodbye(struct stream *stream)
{
    ERR_clear_error();
    SSL_shutdown(stream->tls->ssl);
    send_records(stream);
}
