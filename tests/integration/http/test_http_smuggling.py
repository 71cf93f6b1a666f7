# SPDX-License-Identifier: Apache-2.0
"""Requests and replies that different readers would read differently: refused, closed, and nothing
of them passed on."""
import pytest

from lab import process
from lab.http import Client, Origin, answer, request
from lab.spillway import http_config

HOST = "Host: a\r\n"
# What follows must never be seen as a request of its own.
HIDDEN = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def post(fields, body="", version="1.1"):
    return f"POST /p HTTP/{version}\r\n{HOST}{fields}\r\n{body}"


CHUNKED = "Transfer-Encoding: chunked\r\n"

REFUSED = {
    # framing (RFC 9112 §6)
    "length and chunked": (400, post("Content-Length: 4\r\n" + CHUNKED, "0\r\n\r\n")),
    "chunked and length": (400, post(CHUNKED + "Content-Length: 4\r\n", "0\r\n\r\n")),
    "chunked twice": (400, post(CHUNKED + CHUNKED, "0\r\n\r\n")),
    "chunked twice in one field": (
        400,
        post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
    ),
    "chunked not last": (400, post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")),
    "another coding": (400, post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n")),
    "identity": (400, post("Transfer-Encoding: identity\r\n", "0\r\n\r\n")),
    "chunked with junk": (400, post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
    "chunked with a parameter": (400, post("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n")),
    "chunked quoted": (400, post('Transfer-Encoding: "chunked"\r\n', "0\r\n\r\n")),
    "chunked after a vertical tab": (400, post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")),
    "empty coding": (400, post("Transfer-Encoding:\r\n", "0\r\n\r\n")),
    "chunked in HTTP/1.0": (400, post(CHUNKED, "0\r\n\r\n", "1.0")),
    "length list": (400, post("Content-Length: 4, 4\r\n", "abcd")),
    "lengths that differ": (400, post("Content-Length: 4\r\nContent-Length: 5\r\n", "abcde")),
    "length with plus": (400, post("Content-Length: +4\r\n", "abcd")),
    "length with minus": (400, post("Content-Length: -4\r\n", "abcd")),
    "length in hexadecimal": (400, post("Content-Length: 0x4\r\n", "abcd")),
    "length with a blank within": (400, post("Content-Length: 1 0\r\n", "0123456789")),
    "length overflow": (400, post("Content-Length: 18446744073709551620\r\n", "abcd")),
    "length far too long": (400, post("Content-Length: " + "9" * 200 + "\r\n", "abcd")),
    "empty length": (400, post("Content-Length:\r\n", "abcd")),
    "length with a letter": (400, post("Content-Length: 4a\r\n", "abcd")),
    # chunks
    "chunk size not hexadecimal": (400, post(CHUNKED, "zz\r\n")),
    "chunk size with 0x": (400, post(CHUNKED, "0x4\r\nabcd\r\n0\r\n\r\n")),
    "chunk size with plus": (400, post(CHUNKED, "+4\r\nabcd\r\n0\r\n\r\n")),
    "negative chunk size": (400, post(CHUNKED, "-4\r\nabcd\r\n0\r\n\r\n")),
    "chunk size overflow": (400, post(CHUNKED, "ffffffffffffffff1\r\nabcd\r\n")),
    "empty chunk size": (400, post(CHUNKED, "\r\nabcd\r\n0\r\n\r\n")),
    "chunk line ends in bare LF": (400, post(CHUNKED, "4\nabcd\r\n0\r\n\r\n")),
    "chunk data ends in bare LF": (400, post(CHUNKED, "4\r\nabcd\n0\r\n\r\n")),
    "chunk data longer than said": (400, post(CHUNKED, "4\r\nabcde\r\n0\r\n\r\n")),
    "bare CR in a chunk extension": (400, post(CHUNKED, "4;a\rb\r\nabcd\r\n0\r\n\r\n")),
    "bare LF in a chunk extension": (400, post(CHUNKED, "4;a\nb\r\nabcd\r\n0\r\n\r\n")),
    "trailer with a space before its colon": (400, post(CHUNKED, "0\r\nX : 1\r\n\r\n")),
    # fields (RFC 9112 §5)
    "space before the colon of a length": (400, post("Content-Length : 4\r\n", "abcd")),
    "space before the colon of a coding": (
        400,
        post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
    ),
    "tab before a colon": (400, post("X-A\t: 1\r\n")),
    "folded line": (400, post("X-A: 1\r\n 2\r\n")),
    "folded coding": (400, post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")),
    "first field begins with a blank": (400, f"GET / HTTP/1.1\r\n X: 1\r\n{HOST}\r\n"),
    "bare LF after the request line": (400, f"GET / HTTP/1.1\n{HOST}\r\n"),
    "bare LF after a field": (400, "GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n"),
    "bare LF at the end": (400, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
    "bare CR in a value": (400, post("X-A: 1\r2\r\n")),
    "NUL in a value": (400, post("X-A: 1\x002\r\n")),
    "NUL in a name": (400, post("X-\x00A: 1\r\n")),
    "control character in a value": (400, post("X-A: 1\x012\r\n")),
    "DEL in a value": (400, post("X-A: 1\x7f2\r\n")),
    "empty name": (400, post(": 1\r\n")),
    "no colon": (400, post("X-A\r\n")),
    "space in a name": (400, post("X A: 1\r\n")),
    "high byte in a name": (400, post("X-\xe9: 1\r\n")),
    "bracket in a name": (400, post("X(A): 1\r\n")),
    # host
    "no Host": (400, "GET / HTTP/1.1\r\n\r\n"),
    "two Hosts": (400, f"GET / HTTP/1.1\r\n{HOST}Host: b\r\n\r\n"),
    "the same Host twice": (400, f"GET / HTTP/1.1\r\n{HOST}{HOST}\r\n"),
    "Host with a path": (400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    "Host with user information": (400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    "Host with a blank": (400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    "Host with a bad port": (400, "GET / HTTP/1.1\r\nHost: a:http\r\n\r\n"),
    "two Hosts with an absolute target": (400, f"GET http://a/ HTTP/1.1\r\n{HOST}Host: b\r\n\r\n"),
    # request line
    "two blanks in the request line": (400, f"GET  / HTTP/1.1\r\n{HOST}\r\n"),
    "tab in the request line": (400, f"GET\t/ HTTP/1.1\r\n{HOST}\r\n"),
    "blank at the end of the request line": (400, f"GET / HTTP/1.1 \r\n{HOST}\r\n"),
    "blank in the target": (400, f"GET /a b HTTP/1.1\r\n{HOST}\r\n"),
    "NUL in the target": (400, f"GET /\x00 HTTP/1.1\r\n{HOST}\r\n"),
    "fragment in the target": (400, f"GET /#x HTTP/1.1\r\n{HOST}\r\n"),
    "relative target": (400, f"GET index.html HTTP/1.1\r\n{HOST}\r\n"),
    "method with a bad character": (400, f"GE(T / HTTP/1.1\r\n{HOST}\r\n"),
    "no version": (400, "GET /\r\n\r\n"),
    "lower-case version": (400, f"GET / http/1.1\r\n{HOST}\r\n"),
    "version with junk": (400, f"GET / HTTP/1.1x\r\n{HOST}\r\n"),
    "garbage": (400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    "asterisk with GET": (400, f"GET * HTTP/1.1\r\n{HOST}\r\n"),
    "HTTP/2 version": (505, f"GET / HTTP/2.0\r\n{HOST}\r\n"),
    "CONNECT": ((405, 501), "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
}


@pytest.fixture(scope="module")
def road():
    """One proxy and origin for the whole table; each row has a connection of its own."""
    from lab.spillway import Spillway

    server = Origin()
    port = process.free_port()
    proxy = Spillway(http_config([server.address], port))
    yield port, server, proxy
    try:
        proxy.stop()
    finally:
        proxy.kill()
        server.close()


@pytest.mark.parametrize("case", REFUSED, ids=lambda name: name.replace(" ", "_"))
def test_refused_closed_and_nothing_passed_on(road, case):
    expected, raw = REFUSED[case]
    port, server, proxy = road
    before = len(server.requests)
    with Client(port) as one:
        one.send(raw + HIDDEN)
        reply = one.reply()
        assert reply.status in (expected if isinstance(expected, tuple) else (expected,))
        assert reply.get("connection") == b"close"
        assert one.closed()
    passed = server.requests[before:]
    # A head whose body is wrong may have been passed on before the wrong chunk came: unfinished,
    # never as whole.
    assert passed == [], f"the origin got {passed}"
    with Client(port) as other:
        assert other.ask(target="/alive").status == 200
    assert [r.target for r in server.requests[before:]] == [b"/alive"]


def test_a_good_request_before_a_bad_one_is_answered(road, client):
    port, _, _ = road
    one = client(port)
    one.send(request(target="/good") + b"GET /bad HTTP/1.1\r\nHost : a\r\n\r\n")
    assert one.reply().status == 200
    assert one.reply().status == 400
    assert one.closed()


def test_malformed_requests_are_counted(road, client):
    port, _, proxy = road
    before = proxy.metric("spillway_listener_malformed_total", listener="front")
    one = client(port)
    one.send(b"nonsense\r\n\r\n")
    assert one.reply().status == 400
    proxy.wait_metric("spillway_listener_malformed_total", before + 1, listener="front")


# ------------------------------------------------ replies

NONSENSE = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "length and chunked": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "lengths that differ": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "length not a number": b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
    "folded line": b"HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\nContent-Length: 0\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "status below 100": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "NUL in a value": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "protocol change nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Fill: " + b"y" * 1000000 + b"\r\n\r\n",
    "closed without a word": b"",
    "closed within the head": b"HTTP/1.1 200 OK\r\nContent-Le",
}


@pytest.mark.parametrize("case", NONSENSE, ids=lambda name: name.replace(" ", "_"))
def test_servers_nonsense_becomes_502(spillway, origin, client, case):
    server = origin(
        lambda exchange: answer(b"fine")
        if exchange.request.target == b"/fine"
        else NONSENSE[case] + Origin.CLOSE
    )
    port = process.free_port()
    proxy = spillway(http_config([server.address], port, {"retry": {"dead-after": 100}}))
    one = client(port)
    assert one.ask("POST", "/", body=b"x").status == 502
    assert client(port).ask(target="/fine").body == b"fine"
    assert server.accepted == 2, "the connection that spoke nonsense must not be used again"
    proxy.wait_metric("spillway_server_errors_total", 1, pool="farm")


def test_interim_replies_without_end_are_502(spillway, origin, client):
    server = origin(lambda exchange: b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2000 + Origin.CLOSE)
    port = process.free_port()
    spillway(http_config([server.address], port))
    one = client(port)
    one.send(request("POST", body=b"x"))
    assert one.final("POST").status == 502


@pytest.mark.parametrize("rest", [b"", b"zz\r\n", b"5\r\nabc"], ids=["closed", "bad size", "cut"])
def test_reply_that_breaks_off_is_cut_not_completed(spillway, origin, client, rest):
    server = origin(
        lambda exchange: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
        + rest
        + Origin.CLOSE
    )
    port = process.free_port()
    spillway(http_config([server.address], port))
    one = client(port)
    one.send(request())
    with pytest.raises(Exception) as ended:
        one.reply()
    assert type(ended.value).__name__ == "Ended", "the client must see that the body is not whole"


def test_reply_shorter_than_its_length_is_cut(spillway, origin, client):
    server = origin(
        lambda exchange: b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc" + Origin.CLOSE
    )
    port = process.free_port()
    spillway(http_config([server.address], port))
    one = client(port)
    one.send(request())
    with pytest.raises(Exception) as ended:
        one.reply()
    assert type(ended.value).__name__ == "Ended"


def test_unsolicited_bytes_on_an_idle_server_connection_close_it(spillway, origin, client):
    """A reply to no request must never become the next request's reply."""

    def handler(exchange):
        if exchange.request.target == b"/poison":
            return answer(b"first") + answer(b"poison")
        return answer(b"clean")

    server = origin(handler)
    port = process.free_port()
    spillway(http_config([server.address], port))
    one = client(port)
    assert one.ask(target="/poison").body == b"first"
    assert one.ask(target="/next").body == b"clean"
    assert server.accepted == 2
