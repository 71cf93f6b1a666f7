# SPDX-License-Identifier: Apache-2.0
"""Limits and time limits, each with its own status (RFC 9110 §15.5): 413, 414, 431, 408, 504, 503
with Retry-After."""
import socket
import threading

import pytest

from lab import http, process
from lab.http import answer, request
from lab.spillway import http_config


@pytest.fixture
def road(spillway, origin):
    """road(handler, listener=..., pool=...) gives (port, origin, proxy)."""

    def build(handler=None, listener=None, pool=None, server=None, **options):
        backend = origin(handler, **options)
        port = process.free_port()
        return port, backend, spillway(http_config([backend.address], port, pool, listener, server))

    return build


LIMITS = {
    "limits": {"request-line": "1KiB", "header": "4KiB", "header-fields": 20, "body": "10KiB"}
}


# ------------------------------------------------ sizes


def test_long_request_line_is_414(road, client):
    port, server, _ = road(listener=LIMITS)
    one = client(port)
    one.send(f"GET /{'x' * 2000} HTTP/1.1\r\nHost: a\r\n\r\n")
    assert one.reply().status == 414
    assert one.closed() and server.requests == []


def test_request_line_without_end_is_414(road, client):
    port, _, _ = road(listener=LIMITS)
    one = client(port)
    one.send("GET /" + "x" * 1500)
    assert one.reply().status == 414
    assert one.closed()


def test_request_line_within_the_limit_passes(road, client):
    port, server, _ = road(listener=LIMITS)
    target = "/" + "x" * (1024 - len("GET / HTTP/1.1"))
    assert client(port).ask(target=target[:-2]).status == 200
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "fields",
    [
        [("X-Long", "y" * 5000)],
        [(f"X-{n}", "y" * 100) for n in range(19)] + [("X", "z" * 3000)],
        [(f"X-{n}", "") for n in range(21)],
    ],
    ids=["one field", "the section", "too many"],
)
def test_large_header_section_is_431(road, client, fields):
    port, server, _ = road(listener=LIMITS)
    one = client(port)
    one.send(request(fields=fields))
    assert one.reply().status == 431
    assert one.closed() and server.requests == []


def test_header_section_without_end_is_431(road, client):
    port, _, _ = road(listener=LIMITS)
    one = client(port)
    one.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + "y" * 6000)
    assert one.reply().status == 431
    assert one.closed()


def test_large_body_is_413_before_it_is_sent(road, client):
    port, server, _ = road(listener=LIMITS)
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10241\r\n\r\n")
    assert one.reply().status == 413
    assert one.closed() and server.requests == []


def test_large_chunked_body_is_413_and_never_whole_at_the_server(road, client):
    port, server, _ = road(listener=LIMITS)
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    one.send("1000\r\n" + "x" * 4096 + "\r\n")
    one.send("2000\r\n" + "x" * 8192 + "\r\n0\r\n\r\n")
    assert one.reply().status == 413
    assert one.closed() and server.requests == []


def test_body_of_the_limit_passes(road, client):
    port, server, _ = road(listener=LIMITS)
    assert client(port).ask("PUT", body=b"x" * 10240).status == 200
    assert server.requests[0].body_bytes == 10240


def test_connections_beyond_the_limit_wait_for_a_place(road, client):
    port, server, proxy = road(listener={"limits": {"connections": 5}})
    kept = [client(port) for _ in range(5)]
    assert all(one.ask().status == 200 for one in kept)
    sixth = client(port)  # the kernel's backlog takes it
    sixth.send(request(target="/sixth"))
    assert all(one.ask().status == 200 for one in kept)
    assert proxy.metric("spillway_listener_connections_open", listener="front") == 5
    assert b"/sixth" not in [r.target for r in server.requests]
    kept[0].close()
    assert sixth.reply().status == 200


# ------------------------------------------------ time


def test_slow_header_is_408(road, client):
    port, server, _ = road(listener={"timeouts": {"header": "300ms"}})
    one = client(port)
    one.send("GET / HTTP/1.1\r\nHost:")
    assert one.reply().status == 408
    assert one.closed() and server.requests == []


def test_header_dripping_byte_by_byte_is_still_408(road, client):
    port, server, _ = road(listener={"timeouts": {"header": "500ms"}})
    one = client(port)
    one.sock.settimeout(0.05)
    with pytest.raises(OSError):  # ends when the proxy has closed
        for _ in range(2000):
            one.send("G")
            try:
                assert (data := one.sock.recv(1000))[:12] == b"HTTP/1.1 408"
                break
            except socket.timeout:
                continue
        one.sock.settimeout(process.PATIENCE_S)
        while one.sock.recv(1000):
            pass
        raise ConnectionError("closed")
    assert server.requests == []


def test_idle_connection_is_closed_without_a_word(road, client):
    port, _, _ = road(listener={"timeouts": {"keep-alive": "300ms"}})
    one = client(port)
    assert one.ask().status == 200
    assert one.closed()


def test_body_that_stops_is_408(road, client):
    port, server, _ = road(listener={"timeouts": {"body-idle": "300ms"}})
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
    assert one.reply().status == 408
    assert one.closed() and server.requests == []
    server.until(lambda: server.open == 0, "the server's connection with half a body closed")


def test_server_that_says_nothing_is_504(road, client):
    hold = threading.Event()
    port, server, proxy = road(
        lambda exchange: hold.wait(process.PATIENCE_S) and None,
        pool={"timeouts": {"first-byte": "300ms"}},
    )
    assert client(port).ask("POST", body=b"x").status == 504
    hold.set()
    server.until(lambda: server.open == 0, "the late server's connection closed")
    assert proxy.metric("spillway_pool_outstanding", pool="farm") == 0


def test_reply_that_stops_is_cut(road, client):
    hold = threading.Event()
    port, _, _ = road(
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        or hold.wait(process.PATIENCE_S)
        and None,
        pool={"timeouts": {"idle": "300ms"}},
    )
    one = client(port)
    one.send(request())
    with pytest.raises(http.Ended):
        one.reply()
    hold.set()


def test_server_that_does_not_accept_is_503_or_504(spillway, client):
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        for _ in range(4):  # its accept queue is full: further SYNs are dropped
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
            fillers.append(filler)
        port = process.free_port()
        spillway(
            http_config(
                [f"127.0.0.1:{full.getsockname()[1]}"],
                port,
                {"timeouts": {"connect": "300ms"}, "retry": {"attempts": 1}},
            )
        )
        assert client(port).ask().status in (502, 503, 504)
        for filler in fillers:
            filler.close()


# ------------------------------------------------ queues


@pytest.fixture
def held(road):
    """held(...): (port, origin, proxy, release); the server answers only after release()."""
    events = []

    def build(**options):
        go = threading.Event()
        events.append(go)

        def handler(exchange):
            go.wait(process.PATIENCE_S)
            return answer()

        return (*road(handler, server={"depth": 1}, **options), go.set)

    yield build
    for go in events:
        go.set()


def test_wait_beyond_the_queue_timeout_is_503_with_retry_after(held, client):
    port, server, proxy, release = held(pool={"queue": {"timeout": "300ms"}})
    first, second = client(port), client(port)
    first.send(request(target="/1"))
    server.wait_requests(1)
    second.send(request(target="/2"))
    reply = second.reply()
    assert reply.status == 503
    assert int(reply.get("retry-after")) >= 1
    release()
    assert first.reply().status == 200
    assert second.ask(target="/3").status == 200, "a refusal does not cost the connection"
    assert proxy.metric("spillway_pool_queue_timeouts_total", pool="farm") == 1
    assert [r.target for r in server.requests] == [b"/1", b"/3"]


def test_full_pool_queue_is_503_with_retry_after(held, client):
    port, server, proxy, release = held(pool={"queue": {"limit": 3}})
    waiting = [client(port) for _ in range(4)]
    waiting[0].send(request())
    server.wait_requests(1)
    for one in waiting[1:]:
        one.send(request())
    proxy.wait_metric("spillway_pool_queue_length", 3, pool="farm")
    refused = client(port).ask()
    assert refused.status == 503 and int(refused.get("retry-after")) >= 1
    release()
    assert [one.reply().status for one in waiting] == [200] * 4
    assert proxy.metric("spillway_pool_refused_total", pool="farm") == 1


def test_full_queue_of_one_flow_leaves_room_for_others(held, client):
    port, server, proxy, release = held(
        pool={
            "queue": {"limit": 100, "flow-limit": 2},
            "flows": [{"name": "greedy", "weight": 1, "match": {"header": {"X-Flow": "greedy"}}}],
        }
    )
    greedy = [("X-Flow", "greedy")]
    waiting = [client(port) for _ in range(3)]
    waiting[0].send(request(fields=greedy))
    server.wait_requests(1)
    for one in waiting[1:]:
        one.send(request(fields=greedy))
    proxy.wait_metric("spillway_flow_queue_length", 2, pool="farm", flow="greedy")
    assert client(port).ask(fields=greedy).status == 503
    other = client(port)
    other.send(request())
    proxy.wait_metric("spillway_pool_queue_length", 3, pool="farm")
    release()
    assert other.reply().status == 200
    assert [one.reply().status for one in waiting] == [200] * 3


def test_client_gone_while_queued_frees_its_place(held, client):
    port, server, proxy, release = held(listener={"abort-on-close": True})
    first, gone, last = client(port), client(port), client(port)
    first.send(request(target="/first"))
    server.wait_requests(1)
    gone.send(request(target="/gone"))
    proxy.wait_metric("spillway_pool_queue_length", 1, pool="farm")
    gone.reset()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    last.send(request(target="/last"))
    release()
    assert first.reply().status == last.reply().status == 200
    assert [r.target for r in server.requests] == [b"/first", b"/last"]
    assert proxy.metric("spillway_pool_cancelled_total", pool="farm") == 1


def test_fin_after_a_whole_request_is_not_an_abort(held, client):
    port, server, _, release = held()
    first, second = client(port), client(port)
    first.send(request())
    server.wait_requests(1)
    second.send(request())
    second.finish_sending()
    first.finish_sending()
    release()
    for one in (first, second):
        assert one.reply().status == 200
        assert one.closed()


def test_fin_behind_pipelined_requests_is_not_their_end(spillway, origin, client):
    """Nor where one of them has its answer at once, from the proxy."""
    go, port = threading.Event(), process.free_port()

    def handler(exchange):
        go.wait(process.PATIENCE_S)
        return answer()

    server = origin(handler)
    config = http_config([server.address], port)
    listener = config["listeners"][0]
    listener["routes"] = [{"match": {"path": "/ok"}, "pool": listener.pop("pool")}]
    spillway(config)
    one = client(port)
    one.send(b"".join(request(target=target) for target in ("/ok/1", "/none", "/ok/2")))
    server.wait_requests(1)
    one.finish_sending()
    # By then the FIN, which is older, has been seen: there is one worker.
    assert client(port).ask(target="/none").status == 404
    go.set()
    assert [one.reply().status for _ in range(3)] == [200, 404, 200]
    assert one.closed() and [r.target for r in server.requests] == [b"/ok/1", b"/ok/2"]


def test_fin_within_a_request_ends_it(road, client):
    port, server, _ = road()
    one = client(port)
    one.send("GET / HTTP/1.1\r\nHost: a\r\n")
    one.finish_sending()
    try:
        assert one.reply().status == 400
    except http.Ended:
        pass
    assert one.closed() and server.requests == []
