# SPDX-License-Identifier: Apache-2.0
"""Upgrade: a tunnel begins with the server's 101, not before, and carries both ways what comes."""
import os
import threading

import pytest

from lab import http, process
from lab.http import answer, request
from lab.spillway import http_config

UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "echo")]
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"


def echo(exchange):
    """Switches when asked to, says hello at once, then returns every byte it gets."""
    if not exchange.request.all("upgrade"):
        return answer(b"plain")
    exchange.send(SWITCH + b"hello")
    data, exchange.stream.buffer = exchange.stream.buffer, b""
    while True:
        exchange.send(data)
        if not (data := exchange.sock.recv(65536)):
            return http.Origin.CLOSE


@pytest.fixture
def road(spillway, origin):
    def build(handler=echo, **options):
        server = origin(handler)
        port = process.free_port()
        return port, server, spillway(http_config([server.address], port, **options))

    return build


def switched(one):
    """Sends the request and reads the 101."""
    one.send(request(fields=UPGRADE))
    reply = one.reply()
    assert reply.status == 101
    assert reply.get("upgrade") == b"echo" and b"upgrade" in reply.get("connection").lower()
    return one


def test_upgrade_reaches_the_server_and_bytes_flow_both_ways(road, client):
    port, server, _ = road()
    one = switched(client(port))
    got = server.requests[0]
    assert got.get("upgrade") == b"echo" and got.get("connection").lower() == b"upgrade"
    assert one.stream.exactly(5) == b"hello"
    for number in range(100):
        one.send(b"%03d" % number)
        assert one.stream.exactly(3) == b"%03d" % number


def test_bytes_that_came_early_go_through_in_order(road, client):
    port, server, _ = road()
    one = client(port)
    early = b"GET /early HTTP/1.1\r\nHost: a\r\n\r\n"
    one.send(request(fields=UPGRADE) + early)
    assert one.reply().status == 101
    one.send(b"late")
    wanted = b"hello" + early + b"late"
    assert one.stream.exactly(len(wanted)) == wanted
    assert len(server.requests) == 1, "tunnelled bytes are not a request"


def test_upgrade_that_is_refused_goes_on_as_http(road, client):
    port, server, _ = road(lambda exchange: answer(exchange.request.target))
    one = client(port)
    one.send(request(target="/1", fields=UPGRADE) + request(target="/2"))
    assert [one.reply().body, one.reply().body] == [b"/1", b"/2"]
    assert len(server.requests) == 2


def test_large_data_keeps_every_byte_through_a_tunnel(road, client):
    port, _, proxy = road()
    one = switched(client(port))
    one.stream.exactly(5)
    before = proxy.resident_bytes()
    noise = os.urandom(1 << 20)
    writer = threading.Thread(target=lambda: [one.send(noise) for _ in range(32)])
    writer.start()
    assert all(one.stream.exactly(len(noise)) == noise for _ in range(32))
    writer.join()
    assert proxy.resident_bytes() - before < 24 << 20


def test_closing_ends_the_other_side_too(road, client):
    port, server, proxy = road()
    one = switched(client(port))
    one.close()
    server.until(lambda: server.open == 0, "the server's side of the tunnel closed")
    two = switched(client(port))
    two.stream.exactly(5)
    server.drop_connections()
    assert two.closed()
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def test_tunnel_connection_is_never_used_for_another_request(road, client):
    port, server, _ = road()
    switched(client(port))
    assert client(port).ask().body == b"plain"
    assert server.accepted == 2


def test_tunnels_take_no_more_than_they_are_given(road, client):
    """A tunnel holds its slot while it lasts; others wait or go by, none is lost."""
    port, _, proxy = road(server={"depth": 2})
    first = switched(client(port))
    assert client(port).ask().body == b"plain"
    first.close()
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
