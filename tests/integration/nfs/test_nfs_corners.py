# SPDX-License-Identifier: Apache-2.0
"""NFS where two things meet: retransmissions and calls in flight, streams and other records, limits and large calls."""
import signal
import socket
import struct
import threading

import pytest

from lab import process, rpc
from lab.rpc import call, opaque, success, u32
from lab.spillway import nfs_config

MIB = 1 << 20


@pytest.fixture
def road(spillway, rpc_server):
    def build(handler=None, pool=None, listener=None, server=None):
        backend = rpc_server(handler)
        port = process.free_port()
        return port, backend, spillway(nfs_config([backend.address], port, pool, listener, server))
    return build


def getattr_call(xid, handle=b"h"):
    return call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(handle))


def write_call(xid, data):
    return call(xid, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h", 0, data))


def write_results(count=0):
    return u32(0, 0, 0, count, 2) + b"verifier"


def from_port(port, source_port):
    """A client whose own port is source_port (0: any)."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", source_port))
    sock.settimeout(process.PATIENCE_S)
    sock.connect(("127.0.0.1", port))
    return rpc.Client(sock)


# ------------------------------------------------ retransmissions

@pytest.mark.parametrize("same_port", [True, False], ids=["same port", "other port"])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_call_in_flight_is_not_executed_twice(road, closing, same_port, how):
    port, server, _ = road()
    server.pause()
    one = closing(from_port(port, 0))
    source = one.sock.getsockname()[1]
    one.send(getattr_call(77))
    server.wait_calls(1)
    one.reset() if how == "reset" or same_port else one.close()
    two = closing(from_port(port, source if same_port else 0))
    two.send(getattr_call(77))
    two.send(getattr_call(78, b"another"))
    server.wait_calls(2)
    server.resume()
    assert sorted([two.reply().xid, two.reply().xid]) == [77, 78]
    assert sorted(c.xid for c in server.calls) == [77, 78]
    if same_port:
        assert server.accepted == 1, "the server sees one client that never went away"


def test_retransmission_on_the_same_connection_is_answered_once(road, rpc_client):
    port, server, _ = road()
    server.pause()
    one = rpc_client(port)
    one.send(getattr_call(5))
    server.wait_calls(1)
    for _ in range(3):
        one.send(getattr_call(5))
    one.send(getattr_call(6))
    server.wait_calls(2)
    server.resume()
    assert sorted([one.reply().xid, one.reply().xid]) == [5, 6]
    one.send(getattr_call(5))           # the same again later is a new call
    assert one.reply().xid == 5
    assert [c.xid for c in server.calls] == [5, 6, 5]


def test_same_xid_with_other_contents_is_another_call(road, rpc_client):
    port, server, _ = road()
    server.pause()
    one = rpc_client(port)
    one.send(getattr_call(5, b"one"))
    one.send(getattr_call(5, b"two"))
    server.wait_calls(2)
    server.resume()
    assert [one.reply().xid, one.reply().xid] == [5, 5]


# ------------------------------------------------ streams

def test_replies_of_two_servers_do_not_mix_on_one_connection(spillway, rpc_server, rpc_client):
    """The MOUNT service's long answer comes while a READ's reply is half way through."""
    half, go_on = threading.Event(), threading.Event()
    data = bytes(range(256)) * (16 * 1024)

    def nfs_handler(request, connection):
        reply = rpc.record(success(request.xid, u32(0, 0, len(data), 0) + opaque(data)))
        connection.sock.sendall(reply[:MIB])
        half.set()
        go_on.wait(process.PATIENCE_S)
        connection.sock.sendall(reply[MIB:])

    def mount_handler(request, connection):
        return success(request.xid, b"m" * size)
    size = 0
    nfs_server, mount_server = rpc_server(nfs_handler), rpc_server(mount_handler)
    port = process.free_port()
    spillway(nfs_config([{"address": nfs_server.address, "mount-port": mount_server.port}], port))
    for size in (100, 3 * MIB):
        half.clear(), go_on.clear()
        one = rpc_client(port)
        one.send(call(1, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 0, len(data))))
        assert half.wait(process.PATIENCE_S)
        calls = len(mount_server.calls)
        one.send(call(2, rpc.MOUNT, 3, 5))
        mount_server.wait_calls(calls + 1)
        go_on.set()
        first, second = one.reply(), one.reply()
        assert (first.xid, second.xid) == (1, 2)
        assert first.payload.endswith(data) and second.payload.endswith(b"m" * size)
        assert len(second.payload) == 24 + size


class RawServer:
    """A server that is scripted byte by byte: serve(socket) for each connection."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.serve = serve
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(process.PATIENCE_S)
            threading.Thread(target=self._run, args=(sock,), daemon=True).start()

    def _run(self, sock):
        with sock:
            try:
                self.serve(sock)
            except (OSError, rpc.Ended):
                pass

    def close(self):
        self.listener.close()


def test_answer_that_comes_before_the_call_was_sent_whole(spillway, rpc_client, closing):
    """A server may refuse a WRITE by its head; the rest of the record must follow all the same."""
    got = []

    def serve(sock):
        head = sock.recv(4096, socket.MSG_WAITALL)
        sock.sendall(rpc.record(success(struct.unpack(">I", head[4:8])[0], write_results())))
        records = sock.makefile("rb")
        records.read((struct.unpack(">I", head[:4])[0] & 0x7FFFFFFF) + 4 - 4096)
        mark = records.read(4)
        got.append(records.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF))
        sock.sendall(rpc.record(success(struct.unpack(">I", got[0][:4])[0])))
        sock.recv(1)
    backend = closing(RawServer(serve))
    port = process.free_port()
    proxy = spillway(nfs_config([backend.address], port))
    one = rpc_client(port)
    record = rpc.record(write_call(1, b"x" * 2 * MIB))
    one.sock.sendall(record[:10000])
    assert one.reply().xid == 1
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    one.sock.sendall(record[10000:] + rpc.record(getattr_call(2)))
    assert one.reply().xid == 2
    assert got == [getattr_call(2)]


def test_refused_call_is_answered_at_once_and_its_rest_dropped(road, rpc_client):
    port, server, proxy = road(pool={"queue": {"limit": 1}}, server={"depth": 1})
    server.pause()
    filler = rpc_client(port)
    filler.send(getattr_call(1))
    server.wait_calls(1)
    filler.send(getattr_call(2))
    proxy.wait_metric("spillway_pool_queue_length", 1, pool="farm")
    one = rpc_client(port)
    record = rpc.record(write_call(3, b"x" * 2 * MIB))
    one.sock.sendall(record[:5000])
    reply = one.reply()
    assert (reply.xid, reply.results.u32()) == (3, rpc.NFS3ERR_JUKEBOX)
    one.sock.sendall(record[5000:])
    server.resume()
    assert {filler.reply().xid, filler.reply().xid} == {1, 2}
    assert one.write(b"h", 0, b"y" * 100000) == 100000
    assert [c.xid for c in server.calls] == [1, 2, 1]


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_gone_within_a_call_that_has_begun(road, rpc_client, how):
    # A reset that comes right behind data causes no event of its own; it must not take until body-idle.
    port, server, proxy = road(listener={"timeouts": {"body-idle": "5m"}})
    one, other = rpc_client(port), rpc_client(port)
    other.nfs3(rpc.NULL)
    one.sock.sendall(rpc.record(write_call(1, b"x" * MIB))[:MIB // 2])
    server.until(lambda: server.open == 2, "the call has begun")
    one.close() if how == "close" else one.reset()
    server.until(lambda: server.open == 1, "the half call's connection closed")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    other.nfs3(rpc.NULL)
    assert [c.procedure for c in server.calls] == [rpc.NULL, rpc.NULL]


def test_large_writes_that_wait_arrive_whole_in_bounded_memory(road, rpc_client):
    port, server, proxy = road(pool={"nfs": {"read-ahead": "1MiB"}}, server={"depth": 1})
    server.pause()
    one = rpc_client(port)
    one.send(getattr_call(1000))
    server.wait_calls(1)
    before = proxy.resident_bytes()
    calls = [write_call(n, bytes([n]) * (3 * MIB + n)) for n in range(1, 41)]
    sender = threading.Thread(target=lambda: [one.send(c, 2048 if n % 4 == 0 else None) for n, c in enumerate(calls)])
    sender.start()
    proxy.wait_metric("spillway_pool_queue_length", lambda count: count >= 1, pool="farm")
    sender.join(1)
    assert sender.is_alive(), "the client is not slowed"
    assert proxy.resident_bytes() - before < 40 * MIB
    server.resume()
    assert sorted(one.reply().xid for _ in range(41)) == [*range(1, 41), 1000]
    sender.join()
    assert sorted(c.payload for c in server.calls[1:]) == sorted(calls)


def test_drain_lets_a_call_that_is_coming_end(road, rpc_client):
    port, server, proxy = road()
    one, idle = rpc_client(port), rpc_client(port)
    one.nfs3(rpc.NULL), idle.nfs3(rpc.NULL)
    record = rpc.record(write_call(9, b"x" * MIB))
    one.sock.sendall(record[:MIB // 2])
    proxy.wait_metric("spillway_pool_outstanding", 1, pool="farm")
    proxy.process.send_signal(signal.SIGTERM)
    assert idle.closed()
    one.sock.sendall(record[MIB // 2:])
    assert one.reply().xid == 9
    assert one.closed()
    proxy.stop()


def test_source_port_is_kept_when_a_server_connection_is_made_again(spillway, rpc_client, closing):
    ports, closed = [], []

    def serve(sock):
        """Answers two calls, then closes."""
        ports.append(sock.getpeername()[1])
        records = rpc.Records(sock)
        for _ in range(2):
            xid = struct.unpack(">I", records.receive()[:4])[0]
            sock.sendall(rpc.record(success(xid)))
        sock.shutdown(socket.SHUT_WR)
        assert records.closed()
        closed.append(True)
    backend = closing(RawServer(serve))
    port = process.free_port()
    spillway(nfs_config([backend.address], port))
    one = rpc_client(port)
    # Somebody else on the machine may get the port meanwhile, but hardly every time.
    for done in range(1, 6):
        one.nfs3(rpc.NULL)
        one.nfs3(rpc.NULL)
        process.wait_until(lambda: len(closed) == done, "both sides have closed")
        if done > 1 and ports[-1] == ports[-2]:
            return
    raise AssertionError(f"another source port each time: {ports}")
