# SPDX-License-Identifier: Apache-2.0
"""Several servers in a pool: who gets the next request, and what happens when one is gone."""
import threading

import pytest

from lab import process
from lab.http import Origin, answer, request
from lab.spillway import http_config


def named(name):
    return lambda exchange: answer(name.encode())


@pytest.fixture
def farm(spillway, origin):
    """farm(handlers, pool) gives (port, origins, proxy)."""

    def build(handlers, pool=None, server=None, **top):
        servers = [origin(handler) for handler in handlers]
        port = process.free_port()
        proxy = spillway(http_config([s.address for s in servers], port, pool, None, server, **top))
        return port, servers, proxy

    return build


def test_round_robin_gives_each_server_its_turn(farm, client):
    port, servers, _ = farm([named("a"), named("b"), named("c")], {"balance": "round-robin"})
    one = client(port)
    got = [one.ask().body for _ in range(30)]
    assert got[:3] == got[3:6] and set(got[:3]) == {b"a", b"b", b"c"}
    assert [len(s.requests) for s in servers] == [10, 10, 10]


def test_least_outstanding_avoids_the_busy_server(farm, client):
    go = threading.Event()

    def slow(exchange):
        go.wait(process.PATIENCE_S)
        return answer(b"slow")

    port, servers, _ = farm([slow, named("fast")], {"balance": "least-outstanding"})
    stuck = client(port)
    while not servers[0].requests:  # until one sticks at the slow server
        stuck.send(request())
        before = len(servers[1].requests)
        process.wait_until(
            lambda: servers[0].requests or len(servers[1].requests) > before, "some server has it"
        )
        if not servers[0].requests:
            assert stuck.reply().body == b"fast"
    one = client(port)
    assert [one.ask().body for _ in range(20)] == [b"fast"] * 20
    go.set()
    assert stuck.reply().body == b"slow"


def test_depth_of_a_server_is_never_exceeded(farm, client):
    lock, now, most = threading.Lock(), [0], [0]
    gate = threading.Semaphore(0)

    def handler(exchange):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        gate.acquire(timeout=process.PATIENCE_S)
        with lock:
            now[0] -= 1
        return answer()

    port, servers, proxy = farm([handler], server={"depth": 3})
    clients = [client(port) for _ in range(12)]
    for one in clients:
        one.send(request())
    proxy.wait_metric("spillway_pool_queue_length", 9, pool="farm")
    servers[0].wait_requests(3)
    assert proxy.metric("spillway_pool_outstanding", pool="farm") == 3
    for _ in clients:
        gate.release()
    assert [one.reply().status for one in clients] == [200] * 12
    assert most[0] == 3


def test_depth_of_the_pool_bounds_all_servers(farm, client):
    gate = threading.Semaphore(0)

    def handler(exchange):
        gate.acquire(timeout=process.PATIENCE_S)
        return answer()

    port, servers, proxy = farm([handler, handler], {"depth": 4}, server={"depth": 8})
    clients = [client(port) for _ in range(10)]
    for one in clients:
        one.send(request())
    proxy.wait_metric("spillway_pool_queue_length", 6, pool="farm")
    assert proxy.metric("spillway_pool_outstanding", pool="farm") == 4
    for _ in clients:
        gate.release()
    assert [one.reply().status for one in clients] == [200] * 10


# ------------------------------------------------ dead servers


def test_dead_server_is_skipped(spillway, origin, client):
    living = origin(named("living"))
    port = process.free_port()
    proxy = spillway(
        http_config(
            [f"127.0.0.1:{process.free_port()}", living.address],
            port,
            {"retry": {"attempts": 2, "dead-after": 1, "dead-for": "60s"}},
        )
    )
    one = client(port)
    assert [one.ask().body for _ in range(10)] == [b"living"] * 10
    assert proxy.metric("spillway_server_connect_errors_total", pool="farm") == 1


def test_dead_server_is_tried_again_and_comes_back(spillway, origin, client):
    living, back = origin(named("living")), process.free_port()
    port = process.free_port()
    proxy = spillway(
        http_config(
            [{"name": "phoenix", "address": f"127.0.0.1:{back}"}, living.address],
            port,
            {"retry": {"attempts": 2, "dead-after": 1, "dead-for": "300ms"}},
        )
    )
    one = client(port)
    assert one.ask().body == one.ask().body == b"living"
    proxy.wait_metric("spillway_server_up", 0, server="phoenix")
    origin(named("phoenix"), port=back)
    process.wait_until(
        lambda: one.ask().body == b"phoenix", "the server that came back gets requests"
    )
    proxy.wait_metric("spillway_server_up", 1, server="phoenix")


def test_all_servers_dead_is_502_or_503_at_once(spillway, client):
    port = process.free_port()
    spillway(http_config([f"127.0.0.1:{process.free_port()}"], port, {"retry": {"attempts": 2}}))
    one = client(port)
    assert one.ask().status in (502, 503)
    assert one.ask("POST", body=b"x").status in (502, 503)


# ------------------------------------------------ retries


def closes_when_reused(exchange):
    """Answers the first request of a connection; closes, without a byte, upon the second."""
    if exchange.position > 1:
        return Origin.CLOSE
    return answer(b"" if exchange.request.method == b"HEAD" else b"fresh")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_idempotent_request_on_a_closed_reused_connection_is_retried(farm, client, method):
    port, servers, proxy = farm([closes_when_reused])
    one = client(port)
    for _ in range(3):
        assert one.ask(method, body=b"" if method == "PUT" else None).status == 200
    assert servers[0].accepted == 3
    assert proxy.metric("spillway_server_retries_total", pool="farm") == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_request_that_is_not_idempotent_is_never_sent_twice(farm, client, method):
    port, servers, _ = farm([closes_when_reused], {"retry": {"attempts": 5, "dead-after": 100}})
    one = client(port)
    assert one.ask(method, "/1", body=b"x").status == 200
    assert one.ask(method, "/2", body=b"x").status == 502
    assert [r.target for r in servers[0].requests] == [b"/1", b"/2"]


def test_request_on_a_fresh_connection_that_closes_is_not_retried_for_ever(farm, client):
    port, servers, _ = farm([lambda exchange: Origin.CLOSE], {"retry": {"dead-after": 100}})
    assert client(port).ask().status == 502
    assert len(servers[0].requests) == 1, "only a reused connection's close may be retried"


def test_request_with_part_of_a_reply_is_never_retried(farm, client):
    def handler(exchange):
        return answer() if exchange.position == 1 else b"HTTP/1.1 200 OK\r\n" + Origin.CLOSE

    port, servers, _ = farm([handler])
    one = client(port)
    assert one.ask(target="/1").status == 200
    assert one.ask(target="/2").status == 502
    assert [r.target for r in servers[0].requests] == [b"/1", b"/2"]


def test_server_that_closes_idle_connections_costs_no_error(farm, client):
    port, servers, _ = farm([named("a")])
    one = client(port)
    for _ in range(5):
        assert one.ask("POST", body=b"x").status == 200
        servers[0].drop_connections()
        servers[0].until(lambda: servers[0].open == 0, "connections gone")
        # GET may be retried, so it may come at any moment after the close; the next POST finds
        # what GET opened.
        assert client(port).ask("GET").status == 200


# ------------------------------------------------ draining


def test_drained_server_gets_nothing_new_and_ready_brings_it_back(spillway, origin, client):
    servers = [origin(named("a")), origin(named("b"))]
    port = process.free_port()
    proxy = spillway(
        http_config([{"name": n, "address": s.address} for n, s in zip("ab", servers)], port)
    )
    one = client(port)
    assert {one.ask().body for _ in range(4)} == {b"a", b"b"}
    proxy.ctl("drain", "farm/a")
    assert [one.ask().body for _ in range(6)] == [b"b"] * 6
    proxy.ctl("ready", "farm/a")
    assert {one.ask().body for _ in range(4)} == {b"a", b"b"}


def test_draining_lets_the_request_in_flight_end(spillway, origin, client):
    go = threading.Event()

    def handler(exchange):
        go.wait(process.PATIENCE_S)
        return answer(b"in flight")

    servers = [origin(handler), origin(named("b"))]
    port = process.free_port()
    proxy = spillway(
        http_config([{"name": n, "address": s.address} for n, s in zip("ab", servers)], port)
    )
    ones = [client(port), client(port)]
    for one in ones:
        one.send(request())
    servers[0].wait_requests(1)
    proxy.ctl("drain", "farm/a")
    go.set()
    assert {one.reply().body for one in ones} == {b"in flight", b"b"}


# ------------------------------------------------ addresses


@pytest.mark.parametrize("kind", ["name", "IPv6", "UNIX socket"])
def test_servers_may_be_names_ipv6_and_unix_sockets(spillway, origin, client, kind):
    bind = {"name": "127.0.0.1", "IPv6": "::1", "UNIX socket": process.scratch() + "/origin.sock"}[
        kind
    ]
    server = origin(named("a"), bind=bind)
    address = f"localhost:{server.port}" if kind == "name" else server.address
    port = process.free_port()
    spillway(http_config([address], port))
    assert client(port).ask().body == b"a"


def test_listeners_may_be_ipv6_and_several(spillway, origin, client):
    server = origin(named("a"))
    ports = [process.free_port(), process.free_port()]
    config = http_config([server.address], ports[0])
    config["listeners"][0]["bind"] = [f"127.0.0.1:{ports[0]}", f"[::1]:{ports[1]}"]
    spillway(config)
    assert client(ports[0]).ask().body == client(ports[1], "::1").ask().body == b"a"
    assert (
        b'for="[::1]' in server.requests[1].get("forwarded").lower()
    ), "IPv6 is quoted and in brackets (RFC 7239 §6)"
