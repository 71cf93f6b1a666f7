# SPDX-License-Identifier: Apache-2.0
"""The HTTP/1.1 road: what goes in comes out, whole, in order and once (RFC 9110, RFC 9112)."""
import pytest

from lab import http, process
from lab.http import Origin, answer, request
from lab.spillway import http_config


@pytest.fixture
def road(spillway, origin):
    """road(handler) gives (proxy's port, origin, proxy)."""

    def build(handler=None, pool=None, listener=None, **options):
        server = origin(handler, **options)
        port = process.free_port()
        proxy = spillway(http_config([server.address], port, pool, listener))
        return port, server, proxy

    return build


# ------------------------------------------------ with nginx behind


@pytest.fixture
def before_nginx(spillway, nginx):
    port = process.free_port()
    spillway(http_config([nginx.address], port))
    return port


def test_get_returns_the_file(before_nginx, nginx, client):
    nginx.put("page.txt", b"0123456789" * 500)
    reply = client(before_nginx).ask("GET", "/page.txt")
    assert reply.status == 200
    assert reply.body == b"0123456789" * 500


def test_head_has_the_length_and_no_body(before_nginx, nginx, client):
    nginx.put("page.txt", b"x" * 1234)
    one = client(before_nginx)
    reply = one.ask("HEAD", "/page.txt")
    assert (reply.status, reply.get("content-length")) == (200, b"1234")
    assert one.ask("GET", "/page.txt").body == b"x" * 1234  # nothing was left on the connection


def test_post_body_reaches_the_server(before_nginx, client):
    reply = client(before_nginx).ask("POST", "/post", body=b"a" * 70000)
    assert (reply.status, reply.body) == (200, b"posted\n")


def test_204_has_no_body_and_no_framing(before_nginx, client):
    one = client(before_nginx)
    reply = one.ask("GET", "/empty")
    assert reply.status == 204
    assert reply.all("transfer-encoding") == reply.all("content-length") == []
    assert one.ask("GET", "/").status == 200


def test_304_has_no_body(before_nginx, nginx, client):
    nginx.put("page.txt", b"x" * 100)
    one = client(before_nginx)
    tag = one.ask("GET", "/page.txt").get("etag").decode()
    assert one.ask("GET", "/page.txt", [("If-None-Match", tag)]).status == 304
    assert one.ask("GET", "/page.txt").body == b"x" * 100


def test_range_request(before_nginx, nginx, client):
    nginx.put("page.txt", bytes(range(256)))
    reply = client(before_nginx).ask("GET", "/page.txt", [("Range", "bytes=10-19")])
    assert (reply.status, reply.body) == (206, bytes(range(10, 20)))


def test_redirect_passes_unchanged(before_nginx, client):
    reply = client(before_nginx).ask("GET", "/moved")
    assert (reply.status, reply.get("location")) == (302, b"http://elsewhere.example/")


def test_server_connections_are_reused(before_nginx, nginx, client):
    one = client(before_nginx)
    for number in range(50):
        assert one.ask("GET", f"/?reuse={number}").status == 200
    used = {line[0] for line in nginx.access() if "reuse=" in line[1]}
    assert len(used) == 1, f"50 requests in a row took {len(used)} connections to the server"


def test_connections_of_gone_clients_are_reused(before_nginx, nginx, client):
    for number in range(20):
        one = client(before_nginx)
        assert one.ask("GET", f"/?gone={number}").status == 200
        one.close()
    used = {line[0] for line in nginx.access() if "gone=" in line[1]}
    assert len(used) == 1, f"20 clients in turn took {len(used)} connections to the server"


def test_curl_downloads_and_uploads(before_nginx, nginx):
    nginx.put("page.txt", b"through curl\n" * 1000)
    base = f"http://127.0.0.1:{before_nginx}"
    curl = [process.tool("curl"), "-sS", "--fail"]
    assert process.run(curl + [f"{base}/page.txt"]).stdout == "through curl\n" * 1000
    assert (
        process.run(curl + ["-d", "@" + nginx.files + "/page.txt", f"{base}/post"]).stdout
        == "posted\n"
    )
    done = process.run(
        curl
        + ["-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects} ", f"{base}/", f"{base}/"]
    )
    assert done.stdout.split() == ["1", "0"], "curl's second request must find the connection open"


# ------------------------------------------------ pipelining


def test_pipelined_requests_are_answered_in_order(road, client):
    port, server, _ = road(lambda exchange: answer(exchange.request.target))
    one = client(port)
    one.send(b"".join(request(target=f"/{n}") for n in range(40)))
    assert [one.reply().body for _ in range(40)] == [b"/%d" % n for n in range(40)]
    assert len(server.requests) == 40


def test_pipelined_replies_stay_in_order_when_the_first_is_slowest(road, client):
    import threading

    second_arrived = threading.Event()

    def handler(exchange):
        if exchange.request.target == b"/first":
            second_arrived.wait(2)  # the proxy may or may not send the second meanwhile
        else:
            second_arrived.set()
        return answer(exchange.request.target)

    port, _, _ = road(handler)
    one = client(port)
    one.send(request(target="/first") + request(target="/second") + request(target="/third"))
    assert [one.reply().body for _ in range(3)] == [b"/first", b"/second", b"/third"]


def test_pipelined_bodies_do_not_mix(road, client):
    port, server, _ = road(lambda exchange: answer(exchange.request.body))
    one = client(port)
    bodies = [bytes([65 + n]) * (n * 1000) for n in range(10)]
    one.send(b"".join(request("PUT", "/", body=body) for body in bodies))
    assert [one.reply().body for _ in bodies] == bodies
    assert [r.body for r in server.requests] == bodies


def test_request_split_at_every_byte(road, client):
    port, server, _ = road()
    one = client(port)
    for byte in request("POST", "/split", [("X-Field", "value")], body=b"body"):
        one.send(bytes([byte]))
    assert one.reply().status == 200
    assert (server.requests[0].target, server.requests[0].body) == (b"/split", b"body")


def test_a_few_empty_lines_before_a_request_are_skipped(road, client):
    port, server, _ = road()
    one = client(port)
    one.send(b"\r\n" + request(target="/a") + b"\r\n" + request(target="/b"))
    assert one.reply().status == one.reply().status == 200
    assert [r.target for r in server.requests] == [b"/a", b"/b"]


# ------------------------------------------------ framing


def test_chunked_request_arrives_whole(road, client):
    port, server, _ = road()
    one = client(port)
    one.send(
        "PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        '5\r\nhello\r\n6;ext="1"\r\n world\r\n0\r\nX-Trailer: t\r\nContent-Length: 3\r\n\r\n'
    )
    assert one.reply().status == 200
    got = server.requests[0]
    assert got.body == b"hello world"
    assert got.all("content-length") == []
    assert b"content-length" not in [
        n.lower() for n, _ in got.trailers
    ], "a framing field among the trailers"
    assert b"ext" not in b"".join(n + v for n, v in got.fields)


def test_chunked_reply_arrives_whole(road, client):
    reply_bytes = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n" % n + b"z" * n + b"\r\n" for n in range(1, 400))
        + b"0\r\n\r\n"
    )
    port, server, _ = road(lambda exchange: reply_bytes)
    one = client(port)
    for _ in range(3):
        reply = one.ask()
        assert reply.chunked and reply.body == b"z" * sum(range(1, 400))
    assert server.accepted == 1


def test_reply_without_length_becomes_chunked(road, client):
    port, _, _ = road(lambda exchange: b"HTTP/1.0 200 OK\r\n\r\nuntil the end" + Origin.CLOSE)
    one = client(port)
    for _ in range(2):
        reply = one.ask()
        assert reply.chunked and reply.body == b"until the end"


def test_head_reply_keeps_the_length_as_words_only(road, client):
    port, server, _ = road(lambda exchange: b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    one = client(port)
    for _ in range(3):
        assert one.ask("HEAD").get("content-length") == b"5000"
    assert server.accepted == 1


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_body_where_none_may_be_is_dropped_and_the_connection_not_reused(road, client, status):
    port, server, _ = road(
        lambda exchange: answer(b"HTTP/1.1 200 Forged\r\nContent-Length: 0\r\n\r\n", status)
    )
    one = client(port)
    for number in range(1, 4):
        assert one.ask().status == int(status[:3])
        assert (
            server.accepted == number
        ), "a connection with bytes of an impossible body was used again"


def test_body_in_reply_to_head_is_dropped(road, client):
    port, server, _ = road(
        lambda exchange: answer(b"HTTP/1.1 200 Forged\r\nContent-Length: 0\r\n\r\n")
    )
    one = client(port)
    for number in range(1, 3):
        assert one.ask("HEAD").status == 200
        assert server.accepted == number


def test_reply_to_http10_client_is_dechunked_and_closed(road, client):
    port, _, _ = road(
        lambda exchange: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    one = client(port)
    one.send("GET / HTTP/1.0\r\n\r\n")
    reply = one.reply()
    assert reply.all("transfer-encoding") == []
    assert reply.body == b"abc"
    assert one.closed()


def test_http10_keep_alive_is_echoed(road, client):
    port, _, _ = road()
    one = client(port)
    for _ in range(3):
        one.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        reply = one.reply()
        assert (reply.status, reply.get("connection").lower()) == (200, b"keep-alive")


def test_connection_close_of_the_client_is_obeyed(road, client):
    port, server, _ = road()
    one = client(port)
    reply = one.ask(fields=[("Connection", "close")])
    assert reply.get("connection") == b"close"
    assert one.closed()
    assert client(port).ask().status == 200
    assert server.accepted == 1, "the client's close is not the server's"


def test_connection_close_of_the_server_is_not_the_clients(road, client):
    port, server, _ = road(lambda exchange: answer(fields=[("Connection", "close")]) + Origin.CLOSE)
    one = client(port)
    for number in range(1, 4):
        assert one.ask().status == 200
        assert server.accepted == number


# ------------------------------------------------ 1xx


def test_expect_100_continue_is_forwarded(road, client):
    def handler(exchange):
        assert exchange.request.get("expect").lower() == b"100-continue"
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.stream.request_body(exchange.request)
        return answer(exchange.request.body)

    port, server, _ = road(handler, early=True)
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert one.reply().status == 100
    one.send(b"body")
    assert one.reply().body == b"body"
    assert server.errors == []


def test_expect_100_continue_final_status_may_win(road, client):
    port, _, _ = road(
        lambda exchange: answer(b"no", "417 Expectation Failed") + Origin.CLOSE, early=True
    )
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    reply = one.reply()
    assert reply.status == 417
    if reply.get("connection") == b"close":
        assert one.closed()
    else:  # the body must be read and dropped, never taken for a request
        one.send(b"body" + request("PUT", body=b""))
        assert one.reply().status == 417


def test_informational_replies_pass(road, client):
    port, _, _ = road(
        lambda exchange: b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + answer()
    )
    one = client(port)
    one.send(request())
    hints = one.reply()
    assert (hints.status, hints.get("link")) == (103, b"</a.css>")
    assert one.reply().body == b"ok\n"


def test_early_reply_is_relayed_and_the_server_connection_not_reused(road, client):
    port, server, _ = road(
        lambda exchange: answer(b"too much", "413 Content Too Large") + Origin.CLOSE, early=True
    )
    one = client(port)
    one.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + "x" * 1000)
    assert one.reply().status == 413
    assert client(port).ask("PUT", body=b"").status == 413
    assert server.accepted == 2
