/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets: shared ports, taken ports, UNIX sockets live and stale, addresses as text. */
#include "proxy/core/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 3

static struct config_endpoint inet_endpoint(uint16_t port)
{
    struct config_endpoint endpoint = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *address = (struct sockaddr_in *)&endpoint.addr;

    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return endpoint;
}

static struct config_endpoint unix_endpoint(const char *path)
{
    struct config_endpoint endpoint = {.len = sizeof(struct sockaddr_un)};
    struct sockaddr_un *address = (struct sockaddr_un *)&endpoint.addr;

    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
    return endpoint;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    memset(&address, 0, sizeof(address));
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

static bool can_connect(const struct config_endpoint *endpoint)
{
    int fd = socket(endpoint->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    bool connected = connect(fd, (const struct sockaddr *)&endpoint->addr, endpoint->len) == 0;
    close(fd);
    return connected;
}

static void close_all(const int *fds)
{
    for (unsigned i = 0; i < COUNT; i++)
        close(fds[i]);
}

static void port_zero_is_one_port_for_all(void **state)
{
    struct config_endpoint endpoint = inet_endpoint(0);
    int fds[COUNT];
    char text[64];
    char wanted[64];

    (void)state;
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), 0);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(port_of(fds[i]), port_of(fds[0]));
    assert_int_not_equal(port_of(fds[0]), 0);
    listen_format(fds[0], text, sizeof(text));
    snprintf(wanted, sizeof(wanted), "127.0.0.1:%u", port_of(fds[0]));
    assert_string_equal(text, wanted);
    endpoint = inet_endpoint(port_of(fds[0]));
    assert_true(can_connect(&endpoint));
    close_all(fds);
}

static void a_port_in_use_is_refused(void **state)
{
    struct config_endpoint endpoint = inet_endpoint(0);
    int fds[COUNT];
    int more[COUNT];

    (void)state;
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), 0);
    endpoint = inet_endpoint(port_of(fds[0]));
    /* Even though the sockets that have it would share it. */
    assert_int_equal(listen_open(&endpoint, false, more, COUNT), -EADDRINUSE);
    close_all(fds);
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), 0);
    close_all(fds);
}

static void ipv6_is_written_with_brackets(void **state)
{
    struct config_endpoint endpoint = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 *address = (struct sockaddr_in6 *)&endpoint.addr;
    int fds[COUNT];
    char text[64];

    (void)state;
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    int error = listen_open(&endpoint, true, fds, COUNT);
    if (error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL)
        skip(); /* a machine without IPv6 */
    assert_int_equal(error, 0);
    listen_format(fds[0], text, sizeof(text));
    assert_int_equal(strncmp(text, "[::1]:", 6), 0);
    close_all(fds);
}

static void unix_sockets_replace_stale_files_only(void **state)
{
    char directory[] = "/tmp/spillway-listen-XXXXXX";
    char path[64];
    char wanted[80];
    char text[80];
    int fds[COUNT];
    int more[COUNT];

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    struct config_endpoint endpoint = unix_endpoint(path);
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), 0);
    assert_true(can_connect(&endpoint));
    listen_format(fds[0], text, sizeof(text));
    snprintf(wanted, sizeof(wanted), "unix:%s", path);
    assert_string_equal(text, wanted);
    /* Somebody listens there. */
    assert_int_equal(listen_open(&endpoint, false, more, COUNT), -EADDRINUSE);
    assert_true(can_connect(&endpoint));
    close_all(fds);
    /* Nobody does any more; the file is still there. */
    assert_false(can_connect(&endpoint));
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), 0);
    assert_true(can_connect(&endpoint));
    close_all(fds);
    unlink(path);
    /* What is not a socket is nobody's to remove. */
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(listen_open(&endpoint, false, fds, COUNT), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    rmdir(directory);
}

static void what_is_not_a_socket_has_no_address(void **state)
{
    char text[8];

    (void)state;
    listen_format(-1, text, sizeof(text));
    assert_string_equal(text, "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_zero_is_one_port_for_all),
        cmocka_unit_test(a_port_in_use_is_refused),
        cmocka_unit_test(ipv6_is_written_with_brackets),
        cmocka_unit_test(unix_sockets_replace_stale_files_only),
        cmocka_unit_test(what_is_not_a_socket_has_no_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
