# SPDX-License-Identifier: Apache-2.0
"""Peers that are slow, half there or speak garbage cost their own connection and nothing else. SEED
repeats a run."""
import os
import random
import threading

import pytest

from lab import http, process, rpc
from lab.http import Origin, answer, request
from lab.spillway import http_config, nfs_config

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))


@pytest.fixture
def chance():
    print(f"SEED={SEED}")
    return random.Random(SEED)


# ------------------------------------------------ garbage


def garbled(chance, good):
    """A good message with a few bytes changed, cut, doubled or swapped."""
    data = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data)) if data else 0
        kind = chance.randrange(4)
        if kind == 0 and data:
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randint(1, 20)]
        else:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
    return bytes(data)


def test_garbage_from_http_clients(spillway, origin, client, chance):
    server, port = origin(), process.free_port()
    proxy = spillway(http_config([server.address], port))
    good = [
        request("PUT", "/x?y=1", [("X-A", "b"), ("Accept", "*/*")], b"0123456789"),
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: 1\r\n\r\n"
        + request(),
        request("GET", "http://host.example/a/../b", [("Connection", "keep-alive, x")]),
    ]
    for number in range(400):
        data = (
            chance.randbytes(chance.randint(1, 300))
            if number % 4 == 0
            else garbled(chance, chance.choice(good))
        )
        with client(port) as one:
            try:
                one.send(data)
                one.finish_sending()
                one.stream.rest()
            except (OSError, http.Ended):
                pass
    assert client(port).ask().status == 200
    proxy.wait_metric("spillway_listener_connections_open", 1, listener="front")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def test_garbage_from_http_servers(spillway, origin, client, chance):
    good = [
        answer(b"body", fields=[("X-A", "b"), ("Via", "1.1 x")]),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n',
    ]
    lock = threading.Lock()

    def handler(exchange):
        if exchange.request.target == b"/good":
            return answer()
        with lock:
            data = (
                chance.randbytes(chance.randint(1, 300))
                if chance.random() < 0.2
                else garbled(chance, chance.choice(good))
            )
        return data + Origin.CLOSE

    server, port = origin(handler), process.free_port()
    proxy = spillway(http_config([server.address], port, {"retry": {"dead-after": 1000}}))
    for _ in range(300):
        with client(port) as one:
            try:
                one.send(request())
                one.finish_sending()
                one.stream.rest()
            except (OSError, http.Ended):
                pass
    assert client(port).ask(target="/good").status == 200
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def nfs_calls():
    return [
        rpc.record(rpc.call(7, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h" * 32, 5, 100))),
        rpc.record(
            rpc.call(8, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h" * 32, 5, b"data" * 30)),
            fragment=40,
        ),
        rpc.record(
            rpc.call(
                9,
                rpc.NFS,
                4,
                1,
                rpc.compound_arguments(1, rpc.PUTROOTFH, rpc.u32(15) + rpc.opaque("n"), rpc.GETFH),
            )
        ),
        rpc.record(rpc.call(10, rpc.MOUNT, 3, 1, rpc.opaque("/export"))),
    ]


def test_garbage_from_nfs_clients(spillway, rpc_server, rpc_client, chance):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(nfs_config([server.address], port, listener={"limits": {"record": "1MiB"}}))
    for number in range(400):
        data = (
            chance.randbytes(chance.randint(1, 300))
            if number % 4 == 0
            else garbled(chance, chance.choice(nfs_calls()))
        )
        one = rpc_client(port)
        try:
            one.sock.sendall(data)
        except OSError:
            pass
        one.close()
    rpc_client(port).nfs3(rpc.NULL)
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")


def test_garbage_from_nfs_servers(spillway, rpc_server, rpc_client, chance):
    def handler(request_, connection):
        if request_.procedure == rpc.NULL:
            return rpc.success(request_.xid)
        good = rpc.record(
            rpc.canned(request_) or rpc.success(request_.xid), chance.choice([None, 16])
        )
        connection.sock.sendall(
            chance.randbytes(100) if chance.random() < 0.2 else garbled(chance, good)
        )
        return rpc.Server.CLOSE

    server, port = rpc_server(handler), process.free_port()
    proxy = spillway(nfs_config([server.address], port, {"retry": {"dead-after": 1000}}))
    for _ in range(200):
        one = rpc_client(port)
        one.send(rpc.call(5, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 0, 100)))
        one.sock.settimeout(0.05)  # an answer may never come; what counts is what is left behind
        try:
            one.receive()
        except (OSError, rpc.Ended):
            pass
        one.close()
    rpc_client(port).nfs3(rpc.NULL)
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


# ------------------------------------------------ slow and half-open


def test_slow_loris_does_not_keep_others_out(spillway, origin, client):
    server, port = origin(), process.free_port()
    proxy = spillway(http_config([server.address], port, listener={"timeouts": {"header": "1s"}}))
    drips = [client(port) for _ in range(200)]
    for one in drips:
        one.send("GET / HTTP/1.1\r\nHost: a\r\nX-")
    assert [client(port).ask().status for _ in range(20)] == [200] * 20
    assert [one.reply().status for one in drips] == [408] * 200
    proxy.wait_metric("spillway_pool_requests_total", 20, pool="farm")


def test_slow_readers_do_not_hold_slots_for_ever(spillway, origin, client):
    """Every slot is taken by a client that reads nothing: client-idle gives them back."""

    def handler(exchange):
        return answer(bytes(32 << 20) if exchange.request.target == b"/large" else b"small")

    server, port = origin(handler), process.free_port()
    spillway(
        http_config(
            [server.address], port, None, {"timeouts": {"client-idle": "500ms"}}, {"depth": 4}
        )
    )
    stuck = [client(port, receive_buffer=16384) for _ in range(4)]
    for one in stuck:
        one.send(request(target="/large"))
    server.wait_requests(4)
    assert client(port).ask(target="/small").body == b"small"


def test_slow_nfs_readers_are_dropped(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(
        nfs_config(
            [server.address], port, None, {"timeouts": {"client-idle": "500ms"}}, {"depth": 4}
        )
    )
    stuck = rpc_client(port)
    for xid in range(1, 33):
        stuck.send(rpc.call(xid, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 1, 1 << 20)))
    server.until(
        lambda: server.open == 0 and server.accepted >= 1,
        "the stuck client's server connection closed",
    )
    assert rpc_client(port).read(b"h", 1, 10) == b"\1" * 10
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def test_nfs_client_that_stops_within_a_record_is_dropped(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    spillway(nfs_config([server.address], port, listener={"timeouts": {"body-idle": "300ms"}}))
    one = rpc_client(port)
    one.sock.sendall(
        rpc.record(rpc.call(1, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h", 0, bytes(100000))))[
            :5000
        ]
    )
    assert one.closed()
    server.until(lambda: server.open == 0, "no server connection is left with half a record")
    rpc_client(port).nfs3(rpc.NULL)


@pytest.fixture
def cable(net):
    """A machine on the bridge whose cable can be pulled: (namespace wrapper's pid, pull())."""
    names = ("cable0", "cable1")
    net.run(["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]])
    machine = process.Process(
        "machine",
        net.wrap([process.tool("unshare"), "--net", "sh", "-c", "echo up; exec sleep infinity"]),
    )
    machine.wait_log("up")
    net.run(["ip", "link", "set", names[0], "master", "br0", "up"])
    net.run(["ip", "link", "set", names[1], "netns", str(machine.pid)])
    for command in (
        ["ip", "addr", "add", "10.77.0.9/24", "dev", names[1]],
        ["ip", "link", "set", names[1], "up"],
    ):
        process.run(
            [
                process.tool("nsenter"),
                f"--net=/proc/{machine.pid}/ns/net",
                process.tool("ip"),
                *command[1:],
            ]
        )

    def inside(code):
        """Starts Python in the machine with `s` a socket to 10.77.0.1:PORT; it prints DONE and then
        hangs."""
        script = (
            f"import socket\n{code}\nprint('DONE', flush=True)\nimport time\ntime.sleep(1000)\n"
        )
        child = process.Process(
            "half-open",
            [
                process.tool("nsenter"),
                f"--net=/proc/{machine.pid}/ns/net",
                "/usr/bin/python3",
                "-c",
                script,
            ],
        )
        child.wait_log("DONE")
        return child

    yield inside, lambda: net.run(["ip", "link", "set", names[0], "down"])
    machine.kill()
    net.run(["ip", "link", "del", names[0]], check=False)


def half_open(cable, spillway, net, server, timeouts, code):
    """A proxy in the network, a machine that ran `code` and then lost its cable; the proxy."""
    inside, pull = cable
    proxy = spillway(http_config([server], "10.77.0.1:8080", None, {"timeouts": timeouts}), net=net)
    inside(f"s = socket.create_connection(('10.77.0.1', 8080))\n{code}")
    proxy.wait_metric("spillway_listener_connections_open", 1, listener="front")
    pull()
    return proxy


@pytest.fixture
def inner_origin(net, closing):
    """A tiny origin in the network: replies of 64 MiB."""
    code = (
        "import socket\nl = socket.create_server(('127.0.0.1', 8081))\nprint('DONE', flush=True)\n"
        "while True:\n    c, _ = l.accept()\n    c.recv(65536)\n    try:\n"
        "        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 67108864\\r\\n\\r\\n' + bytes(67108864))\n"
        "    except OSError: pass\n    c.close()\n    print('CLOSED', flush=True)\n"
    )
    child = net.start("inner-origin", ["/usr/bin/python3", "-c", code])
    child.wait_log("DONE")
    yield child
    child.kill()


@pytest.mark.parametrize(
    "state, code",
    [
        ("idle", ""),
        ("within a header", "s.sendall(b'GET / HTTP/1.1\\r\\nHo')"),
        (
            "within a body",
            "s.sendall(b'PUT / HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 1000\\r\\n\\r\\nabc')",
        ),
    ],
)
def test_half_open_client_is_dropped_by_its_time_limit(
    cable, spillway, net, inner_origin, state, code
):
    proxy = half_open(
        cable,
        spillway,
        net,
        "127.0.0.1:8081",
        {"header": "500ms", "keep-alive": "500ms", "body-idle": "500ms", "client-idle": "500ms"},
        code,
    )
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def test_half_open_client_within_a_reply_frees_the_server(cable, spillway, net, inner_origin):
    proxy = half_open(
        cable,
        spillway,
        net,
        "127.0.0.1:8081",
        {"client-idle": "500ms"},
        "s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\ns.recv(1000)",
    )
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")
    inner_origin.wait_log("CLOSED")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
