/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS below streams, against OpenSSL's own blocking server in a thread: every byte both ways
 * whatever its segments, back-pressure, goodbyes and cuts, sessions, and what is said of
 * certificates.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "loadgen/net/loop.h"
#include "loadgen/net/stream_tls.h"

#define NS_PER_S    1000000000ULL
#define TOTAL_BYTES 3000000

enum manner {
    ECHO,         /* sends back what comes, says goodbye after TOTAL_BYTES */
    ECHO_AND_CUT, /* the same, and closes without goodbye */
    HANG_UP,      /* closes in the middle of the handshake */
    SPEAK_NO_TLS, /* answers in plain text */
};

static SSL_CTX *server_context;
static char ca_path[64];
static int listener;
static struct sockaddr_storage address;
static socklen_t address_length;
static enum manner manner;

static struct loop loop;
static struct loop_timer guard;

static struct client {
    struct stream stream;
    uint8_t *sent;
    size_t got;
    bool connected;
    bool closed;
    int error;
    int sent_calls;
    int produced;
    bool slow; /* takes little at a time */
} client;

/* ---------------------------------------------------------------- the server */

static void make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509V3_CTX context;
    FILE *file;
    int fd;

    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const uint8_t *)"stream.example", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, &context, NID_subject_alt_name,
                                                "DNS:stream.example,IP:127.0.0.1");

    assert_non_null(names);
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    snprintf(ca_path, sizeof(ca_path), "%s", "/tmp/test-stream-tls-XXXXXX");
    fd = mkstemp(ca_path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    server_context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(server_context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(server_context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void echo(SSL *ssl)
{
    static uint8_t buffer[TOTAL_BYTES];
    size_t total = 0;
    size_t part;

    /* All of it first: the client must cope with a peer that does not read while it writes. */
    while (total < TOTAL_BYTES && SSL_read_ex(ssl, buffer + total, TOTAL_BYTES - total, &part) == 1)
        total += part;
    if (SSL_write_ex(ssl, buffer, total, &part) == 1 && manner == ECHO)
        SSL_shutdown(ssl);
}

/* Serves two connections at most, then ends. */
static void *serve(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        int fd = accept(listener, NULL, NULL);
        char byte;

        if (fd < 0)
            break;
        if (manner == SPEAK_NO_TLS) {
            if (send(fd, "220 mail.example\r\n", 18, MSG_NOSIGNAL) == 18)
                shutdown(fd, SHUT_WR);
        } else if (manner == HANG_UP) {
            if (recv(fd, &byte, 1, 0) == 1)
                shutdown(fd, SHUT_RDWR);
        } else {
            SSL *ssl = SSL_new(server_context);

            SSL_set_fd(ssl, fd);
            if (SSL_accept(ssl) == 1)
                echo(ssl);
            SSL_free(ssl);
        }
        /* What the client still sends is read, so that the kernel cuts nothing off. */
        shutdown(fd, SHUT_WR);
        while (recv(fd, &byte, 1, 0) == 1)
            ;
        close(fd);
    }
    return NULL;
}

/* ---------------------------------------------------------------- the client */

static void note_connected(struct stream *stream)
{
    client.connected = true;
    /* Copied bytes, memory repeated, and bytes of other lengths: three segments. */
    stream_put(stream, client.sent, 1000000);
    stream_put_repeated(stream, client.sent + 1000000, 1000000, 1000000);
    stream_produce(stream);
}

static void note_produce(struct stream *stream)
{
    client.produced++;
    for (size_t at = 2000000; at < TOTAL_BYTES; at += 50000)
        stream_put(stream, client.sent + at, 50000);
}

static void note_sent(struct stream *stream)
{
    (void)stream;
    client.sent_calls++;
}

static size_t check_data(struct stream *stream, const uint8_t *data, size_t length)
{
    size_t take = client.slow && length > 1999 ? 1999 : length;

    (void)stream;
    assert_true(client.connected);
    assert_true(take <= TOTAL_BYTES - client.got);
    assert_memory_equal(data, client.sent + client.got, take);
    client.got += take;
    return take;
}

static void note_closed(struct stream *stream, int error)
{
    (void)stream;
    client.closed = true;
    client.error = error;
    loop_stop(&loop);
}

static const struct stream_handler handler = {
    .connected = note_connected,
    .data = check_data,
    .produce = note_produce,
    .sent = note_sent,
    .closed = note_closed,
};

static void took_too_long(struct loop_timer *timer)
{
    (void)timer;
    fail_msg("the loop did not come to its end");
}

static struct stream_tls_context *context_with(const struct stream_tls_options *options)
{
    char problem[STREAM_TLS_PROBLEM_BYTES];
    struct stream_tls_context *context = stream_tls_context_create(options, problem);

    if (!context)
        fail_msg("%s", problem);
    return context;
}

/* One connection from its beginning to its end. */
static void run_client(struct stream_tls_context *context)
{
    uint8_t *sent = client.sent;
    bool slow = client.slow;

    client = (struct client){.sent = sent, .slow = slow};
    loop.stopped = false;
    stream_connect_tls(&client.stream, &loop, (void *)&address, address_length, &handler, context);
    assert_int_equal(loop_run(&loop), 0);
    assert_true(client.closed);
}

static int set_up(void **state)
{
    struct sockaddr_storage any = {.ss_family = AF_INET};

    (void)state;
    ((uint8_t *)&any)[4] = 127;
    ((uint8_t *)&any)[7] = 1;
    make_certificate();
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (void *)&any, 16), 0);
    assert_int_equal(listen(listener, 5), 0);
    address_length = sizeof(address);
    assert_int_equal(getsockname(listener, (void *)&address, &address_length), 0);
    client.sent = malloc(TOTAL_BYTES);
    for (size_t i = 0; i < TOTAL_BYTES; i++)
        client.sent[i] = (uint8_t)(i * 31 + (i >> 11));
    assert_int_equal(loop_init(&loop), 0);
    guard.fire = took_too_long;
    loop_timer_set(&loop, &guard, loop_clock_ns() + 60 * NS_PER_S);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(listener);
    unlink(ca_path);
    SSL_CTX_free(server_context);
    free(client.sent);
    loop_timer_cancel(&loop, &guard);
    loop_fini(&loop);
    client.slow = false;
    return 0;
}

/* Runs two connections with these options against a server of this manner; checks both ends. */
static void exchange(enum manner wanted, const struct stream_tls_options *options, int error,
                     bool connects, const char *problem)
{
    struct stream_tls_context *context = context_with(options);
    pthread_t server;

    manner = wanted;
    assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
    for (int i = 0; i < 2; i++) {
        run_client(context);
        assert_int_equal(client.error, error);
        assert_int_equal(client.connected, connects);
        assert_int_equal(client.got, connects ? TOTAL_BYTES : 0);
        if (!strstr(stream_tls_problem(&client.stream), problem))
            fail_msg("\"%s\" says nothing of \"%s\"", stream_tls_problem(&client.stream), problem);
        assert_int_equal(stream_tls_resumed(&client.stream), connects && i == 1);
        stream_fini(&client.stream);
    }
    pthread_join(server, NULL);
    stream_tls_context_destroy(context);
}

static void all_bytes_come_and_the_session_is_taken_up(void **state)
{
    (void)state;
    exchange(ECHO,
             &(struct stream_tls_options){.ca_path = ca_path, .server_name = "stream.example"}, 0,
             true, "");
    assert_int_equal(client.produced, 1);
    assert_int_equal(client.sent_calls, 1);
}

static void an_address_is_a_name_too_and_a_slow_reader_gets_all(void **state)
{
    (void)state;
    client.slow = true;
    exchange(ECHO, &(struct stream_tls_options){.ca_path = ca_path, .server_name = "127.0.0.1"}, 0,
             true, "");
}

static void a_cut_is_no_goodbye(void **state)
{
    (void)state;
    exchange(ECHO_AND_CUT, &(struct stream_tls_options){.unverified = true}, ECONNRESET, true, "");
}

static void a_certificate_for_another_is_refused(void **state)
{
    (void)state;
    exchange(ECHO, &(struct stream_tls_options){.ca_path = ca_path, .server_name = "other.example"},
             EPROTO, false, "stream.example) is not accepted for \"other.example\": hostname");
}

static void a_certificate_of_nobody_known_is_refused(void **state)
{
    (void)state;
    exchange(ECHO, &(struct stream_tls_options){.server_name = "stream.example"}, EPROTO, false,
             "self-signed certificate; name a file of certificates to trust");
}

static void a_server_without_the_protocol_is_refused(void **state)
{
    (void)state;
    exchange(ECHO,
             &(struct stream_tls_options){
                 .unverified = true, .protocol = "h2", .protocol_required = true},
             EPROTO, false, "does not offer h2");
}

static void a_server_that_hangs_up_is_told(void **state)
{
    (void)state;
    exchange(HANG_UP, &(struct stream_tls_options){.unverified = true}, ECONNRESET, false, "");
}

static void a_server_of_another_kind_is_told(void **state)
{
    (void)state;
    exchange(SPEAK_NO_TLS, &(struct stream_tls_options){.unverified = true}, EPROTO, false,
             "does the server speak TLS on this port?");
}

static void a_file_without_certificates_is_refused(void **state)
{
    char problem[STREAM_TLS_PROBLEM_BYTES];

    (void)state;
    assert_null(stream_tls_context_create(
        &(struct stream_tls_options){.ca_path = "/nowhere/ca.pem"}, problem));
    assert_non_null(strstr(problem, "/nowhere/ca.pem"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_bytes_come_and_the_session_is_taken_up, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_address_is_a_name_too_and_a_slow_reader_gets_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cut_is_no_goodbye, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_certificate_for_another_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_certificate_of_nobody_known_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_without_the_protocol_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_hangs_up_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_of_another_kind_is_told, set_up, tear_down),
        cmocka_unit_test(a_file_without_certificates_is_refused),
    };

    /* OpenSSL writes to sockets that the client has closed. */
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
