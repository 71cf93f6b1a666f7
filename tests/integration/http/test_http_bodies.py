# SPDX-License-Identifier: Apache-2.0
"""Bodies of any size stream with back-pressure, in bounded memory. SPILLWAY_TEST_BODY_GIB=10 for
the long form."""
import hashlib
import os
import threading

import pytest

from lab import process
from lab.http import answer, request
from lab.spillway import http_config

GIB = 1 << 30
BODY = int(float(os.environ.get("SPILLWAY_TEST_BODY_GIB", "1")) * GIB)
# What one body may cost: buffers both ways, kernel memory not counted, sanitizers' shadow counted.
GROWTH = 24 << 20


class Watermark:
    """The highest resident memory of a process seen while it lives (polled by a thread)."""

    def __init__(self, pid):
        self.pid, self.peak, self.ended = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        while True:
            self.peak = max(self.peak, process.resident_bytes(self.pid))
            if self.ended.wait(0.05):
                return

    def close(self):
        self.ended.set()
        self.thread.join()


@pytest.fixture
def watermark(closing):
    return lambda proxy: closing(Watermark(proxy.pid))


def test_large_download_in_constant_memory(spillway, nginx, client, watermark):
    nginx.put_sparse("large", BODY)
    port = process.free_port()
    proxy = spillway(http_config([nginx.address], port))
    one = client(port)
    assert one.ask().status == 200
    before = proxy.resident_bytes()
    peak = watermark(proxy)
    one.send(request(target="/large"))
    assert one.reply(keep=False).body_bytes == BODY
    assert peak.peak - before < GROWTH
    assert one.ask().status == 200


def test_large_upload_in_constant_memory(spillway, origin, client, watermark):
    server = origin(keep_bodies=False)
    port = process.free_port()
    proxy = spillway(http_config([server.address], port))
    one = client(port)
    assert one.ask().status == 200
    before = proxy.resident_bytes()
    peak = watermark(proxy)
    one.send(f"PUT /large HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n")
    block = memoryview(bytes(1 << 20))
    for _ in range(BODY >> 20):
        one.sock.sendall(block)
    assert one.reply().status == 200
    assert server.requests[-1].body_bytes == BODY
    assert peak.peak - before < GROWTH


def test_slow_reader_holds_the_server_back_not_the_memory(spillway, origin, client, watermark):
    """A client that does not read: the server must be stopped long before the body is through."""
    sent = []

    def handler(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (256 << 20))
        block = bytes(1 << 16)
        exchange.sock.settimeout(1.0)  # only so that a server thread held back can be seen to be
        try:
            for _ in range((256 << 20) >> 16):
                exchange.sock.sendall(block)
                sent.append(len(block))
        except TimeoutError:
            sent.append("held back")

    server = origin(handler)
    port = process.free_port()
    proxy = spillway(http_config([server.address], port))
    one = client(port, receive_buffer=65536)
    before = proxy.resident_bytes()
    peak = watermark(proxy)
    one.send(request())
    process.wait_until(lambda: sent and sent[-1] == "held back", "the server is held back")
    assert sum(sent[:-1]) < 64 << 20
    assert peak.peak - before < GROWTH


def test_slow_server_holds_the_client_back_not_the_memory(spillway, origin, client, watermark):
    go = threading.Event()

    def handler(exchange):
        go.wait(process.PATIENCE_S)
        exchange.stream.request_body(exchange.request, keep=False)
        return answer()

    server = origin(handler, early=True, receive_buffer=65536)
    port = process.free_port()
    proxy = spillway(http_config([server.address], port))
    one = client(port)
    size = 256 << 20
    before = proxy.resident_bytes()
    peak = watermark(proxy)
    one.send(f"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n")
    one.sock.settimeout(1.0)
    block, sent = bytes(1 << 16), 0
    with pytest.raises(TimeoutError):
        while sent < size:
            sent += one.sock.send(block)
    assert sent < 64 << 20
    assert peak.peak - before < GROWTH
    one.sock.settimeout(process.PATIENCE_S)
    go.set()
    while sent < size:
        sent += one.sock.send(block[: size - sent])
    assert one.reply().status == 200


def test_many_slow_readers_in_bounded_memory(spillway, origin, client, watermark):
    body = bytes(4 << 20)
    server = origin(lambda exchange: answer(body))
    port = process.free_port()
    proxy = spillway(http_config([server.address], port, server={"depth": 64}))
    before = proxy.resident_bytes()
    peak = watermark(proxy)
    readers = [client(port, receive_buffer=16384) for _ in range(40)]
    for one in readers:
        one.send(request())
    server.wait_requests(40)
    for one in readers:
        one.stream.more()  # every reply has begun
    assert peak.peak - before < 40 * (1 << 20) + GROWTH, "more than 1 MiB for a stalled client"
    total = sum(one.reply(keep=False).body_bytes for one in readers)
    assert total == 40 * len(body)


def test_slow_reader_is_dropped_after_client_idle(spillway, origin, client):
    server = origin(lambda exchange: answer(bytes(64 << 20)))
    port = process.free_port()
    proxy = spillway(
        http_config([server.address], port, listener={"timeouts": {"client-idle": "500ms"}})
    )
    one = client(port, receive_buffer=16384)
    one.send(request())
    one.stream.more()
    server.until(
        lambda: server.open == 0, "the server's connection of a client that reads nothing closed"
    )
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_bodies_of_odd_sizes_keep_every_byte(spillway, origin, client, framing):
    server = origin(
        lambda exchange: answer(hashlib.sha256(exchange.request.body).hexdigest().encode())
    )
    port = process.free_port()
    spillway(http_config([server.address], port))
    one = client(port)
    noise = os.urandom(1 << 20)
    for size in (
        0,
        1,
        2,
        1023,
        4095,
        4096,
        4097,
        65535,
        65536,
        65537,
        262143,
        262144,
        262145,
        1 << 20,
    ):
        body = noise[:size]
        if framing == "length":
            one.send(request("PUT", "/", body=body))
        else:
            pieces = b"".join(
                b"%x\r\n" % len(body[at : at + 7919]) + body[at : at + 7919] + b"\r\n"
                for at in range(0, size, 7919)
            )
            one.send(
                b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + pieces
                + b"0\r\n\r\n"
            )
        assert one.reply().body.decode() == hashlib.sha256(body).hexdigest(), size


def test_download_keeps_every_byte(spillway, nginx, client):
    noise = os.urandom(20 << 20)
    nginx.put("noise", noise)
    port = process.free_port()
    spillway(http_config([nginx.address], port))
    assert client(port).ask(target="/noise").body == noise
