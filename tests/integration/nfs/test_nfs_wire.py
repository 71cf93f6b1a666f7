# SPDX-License-Identifier: Apache-2.0
"""The NFS road, byte by byte, between a raw client and a scripted server (RFC 5531 §11, RFC 1813).
"""
import pytest

from lab import process, rpc
from lab.rpc import call, opaque, success, u32, u64
from lab.spillway import nfs_config


@pytest.fixture
def road(spillway, rpc_server):
    """road(handler, ...) gives (port, server, proxy)."""

    def build(handler=None, pool=None, listener=None, server=None, **options):
        backend = rpc_server(handler, **options)
        port = process.free_port()
        return port, backend, spillway(nfs_config([backend.address], port, pool, listener, server))

    return build


def test_call_and_reply_pass_unchanged(road, rpc_client):
    port, server, _ = road()
    payload = call(
        0xDEADBEEF,
        rpc.NFS,
        3,
        rpc.READ,
        rpc.read_arguments(b"h" * 64, 12345, 100),
        rpc.auth_sys(7, 8, "m", [9]),
    )
    one = rpc_client(port)
    one.send(payload)
    reply = one.receive()
    assert server.calls[0].payload == payload
    assert reply == rpc.canned(server.calls[0])


def test_each_client_connection_has_its_own_server_connection(road, rpc_client):
    port, server, _ = road()
    clients = [rpc_client(port) for _ in range(5)]
    for _ in range(3):
        for one in clients:
            one.nfs3(rpc.NULL)
    assert server.accepted == 5
    assert sorted(c.connection for c in server.calls) == sorted(list(range(1, 6)) * 3)


def test_many_calls_in_flight_all_get_their_reply(road, rpc_client):
    port, server, _ = road()
    one = rpc_client(port)
    one.sock.sendall(
        b"".join(
            rpc.record(call(n, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", n & 0xFF, 10)))
            for n in range(1, 1001)
        )
    )
    seen = {}
    for _ in range(1000):
        reply = one.reply()
        reply.results.u32(), reply.results.post_op_attr(), reply.results.u32(), reply.results.u32()
        seen[reply.xid] = reply.results.opaque()
    assert seen == {n: bytes([n & 0xFF]) * 10 for n in range(1, 1001)}


def test_replies_out_of_order_pass(road, rpc_client):
    held = []

    def handler(request, connection):
        held.append(request)
        if len(held) == 3:
            for one in held[::-1]:
                connection.send(success(one.xid, b"%04d" % one.xid))

    port, _, _ = road(handler)
    one = rpc_client(port)
    for xid in (1, 2, 3):
        one.send(call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(b"h")))
    assert [one.reply().xid for _ in range(3)] == [3, 2, 1]


def test_same_xids_of_two_clients_do_not_meet(road, rpc_client):
    port, server, _ = road(
        lambda request, connection: success(request.xid, opaque(str(request.uid())))
    )
    server.pause()
    one, two = rpc_client(port), rpc_client(port)
    for xid in range(1, 51):
        one.send(call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(b"h"), rpc.auth_sys(1001)))
        two.send(call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(b"h"), rpc.auth_sys(1002)))
    server.wait_calls(2)
    server.resume()
    for client, uid in ((one, b"1001"), (two, b"1002")):
        replies = [client.reply() for _ in range(50)]
        assert sorted(r.xid for r in replies) == list(range(1, 51))
        assert {r.results.opaque() for r in replies} == {uid}


# ------------------------------------------------ records


@pytest.mark.parametrize("fragment", [1, 3, 4, 28, 2048])
def test_fragments_arrive_as_one_whole_record(road, rpc_client, fragment):
    port, server, _ = road()
    one = rpc_client(port)
    assert one.write(b"handle", 0, b"x" * 30000, fragment=fragment) == 30000
    assert rpc.Reader(server.calls[0].arguments[-30004:]).opaque() == b"x" * 30000
    assert one.read(b"handle", 5, 9, fragment=fragment) == b"\5" * 9
    if fragment >= 28:
        assert server.calls[1].fragments == 1, "a record held whole goes on as one fragment"


def test_stream_cut_at_every_byte(road, rpc_client):
    port, server, _ = road()
    one = rpc_client(port)
    for byte in rpc.record(
        call(1, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 1, 10)), fragment=40
    ):
        one.sock.sendall(bytes([byte]))
    assert one.reply().xid == 1


def test_fragmented_replies_arrive_whole(road, rpc_client):
    port, _, _ = road(reply_fragment=2048)
    assert rpc_client(port).read(b"h", 3, 100000) == b"\3" * 100000


def test_zero_length_fragments_are_harmless(road, rpc_client):
    port, server, _ = road()
    payload = call(5, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 1, 10))
    one = rpc_client(port)
    one.sock.sendall(
        u32(0) * 5
        + u32(20)
        + payload[:20]
        + u32(0) * 3
        + u32(len(payload) - 20)
        + payload[20:]
        + u32(rpc.LAST_FRAGMENT)
    )
    assert one.reply().xid == 5
    assert server.calls[0].payload == payload


def test_endless_zero_length_fragments_close_the_connection(road, rpc_client):
    port, _, proxy = road(listener={"limits": {"fragments": 1000}})
    one = rpc_client(port)
    try:
        one.sock.sendall(u32(0) * 100000)
    except OSError:
        pass
    assert one.closed()


def test_too_many_fragments_close_the_connection_with_a_log_line(road, rpc_client):
    port, server, proxy = road(listener={"limits": {"fragments": 100}})
    one = rpc_client(port)
    try:
        one.send(
            call(1, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h", 0, b"x" * 1000)), fragment=2
        )
    except OSError:
        pass
    assert one.closed()
    assert server.calls == []
    proxy.wait_log("fragment")


@pytest.mark.parametrize(
    "mark", [rpc.LAST_FRAGMENT | 0x7FFFFFFF, 0x7FFFFFFF, rpc.LAST_FRAGMENT | (1 << 20) + 1]
)
def test_oversized_records_close_the_connection_with_a_log_line(road, rpc_client, mark):
    port, server, proxy = road(listener={"limits": {"record": "1MiB"}})
    one, other = rpc_client(port), rpc_client(port)
    other.nfs3(rpc.NULL)
    one.sock.sendall(u32(mark) + call(1, rpc.NFS, 3, rpc.NULL))
    assert one.closed()
    proxy.wait_log("record")
    other.nfs3(rpc.NULL)  # nobody else is hurt
    assert [c.procedure for c in server.calls] == [rpc.NULL] * 2
    assert proxy.metric("spillway_listener_malformed_total", listener="front") == 1


def test_record_growing_by_fragments_past_the_cap_closes(road, rpc_client):
    port, server, _ = road(listener={"limits": {"record": "1MiB"}})
    one = rpc_client(port)
    try:
        one.send(
            call(1, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h", 0, bytes(2 << 20))),
            fragment=2048,
        )
    except OSError:
        pass
    assert one.closed()
    assert server.calls == []


@pytest.mark.parametrize("size", [4096, 65536, 1 << 20, (1 << 20) + 1, 4 << 20])
def test_large_reads_and_writes_keep_every_byte(road, rpc_client, size):
    port, server, _ = road()
    one = rpc_client(port)
    pattern = bytes(range(251)) * (size // 251 + 1)
    assert one.write(b"h", 0, pattern[:size]) == size
    assert rpc.Reader(server.calls[0].arguments[24:]).opaque() == pattern[:size]
    assert one.read(b"h", 77, size) == b"\x4d" * size


def test_record_of_64_mib(road, rpc_client):
    """In 2 KiB fragments, as some clients really send it."""
    port, server, proxy = road()
    one = rpc_client(port)
    size = 64 << 20
    before = proxy.resident_bytes()
    assert one.write(b"h", 0, bytes(size), fragment=2048) == size
    assert len(server.calls[0].arguments) == size + 28
    assert proxy.resident_bytes() - before < 48 << 20, "the record was held whole"


def test_slow_reader_of_large_replies_in_bounded_memory(road, rpc_client):
    port, server, proxy = road(server={"depth": 256})
    one = rpc_client(port)
    before = proxy.resident_bytes()
    one.sock.sendall(
        b"".join(
            rpc.record(call(n, rpc.NFS, 3, rpc.READ, rpc.read_arguments(b"h", 1, 1 << 20)))
            for n in range(1, 101)
        )
    )
    one.receive()
    process.wait_until(lambda: len(server.calls) > 1, "the server works ahead")
    assert proxy.resident_bytes() - before < 64 << 20
    assert sorted(one.reply().xid for _ in range(99))[-1] == 100


# ------------------------------------------------ programs, both directions


def test_mount_goes_to_the_mount_port_and_nfs_to_nfs(spillway, rpc_server, rpc_client):
    nfs_server, mount_server = rpc_server(), rpc_server()
    port = process.free_port()
    spillway(nfs_config([{"address": nfs_server.address, "mount-port": mount_server.port}], port))
    one = rpc_client(port)
    assert one.mount("/export") == b"root-handle"
    one.nfs3(rpc.NULL)
    one.ask(rpc.NFS, 3, rpc.GETATTR, opaque(b"root-handle"))
    assert {c.program for c in mount_server.calls} == {rpc.MOUNT}
    assert {c.program for c in nfs_server.calls} == {rpc.NFS}


def test_nfsacl_goes_to_the_nfs_server(spillway, rpc_server, rpc_client):
    def handler(request, connection):
        return success(request.xid, u32(0))

    nfs_server, mount_server = rpc_server(handler), rpc_server(handler)
    port = process.free_port()
    spillway(nfs_config([{"address": nfs_server.address, "mount-port": mount_server.port}], port))
    rpc_client(port).ask(rpc.NFSACL, 3, 1, opaque(b"h") + u32(1)).results.u32()
    assert [c.program for c in nfs_server.calls] == [rpc.NFSACL]


def test_backchannel_call_reaches_the_client_and_its_reply_the_server(road, rpc_client):
    """NFSv4.1 callbacks come the other way on the same connection, with XIDs of their own."""

    def handler(request, connection):
        connection.send(call(request.xid, 0x40000000, 1, 1, b"callback"))  # the very same XID
        return success(request.xid, b"done")

    port, server, _ = road(handler)
    one = rpc_client(port)
    one.send(call(9, rpc.NFS, 4, 1, rpc.compound_arguments(1, rpc.PUTROOTFH)))
    first = rpc.Call(one.receive(), 1, 1)
    assert (first.type, first.program, first.arguments) == (rpc.CALL, 0x40000000, b"callback")
    assert one.reply().xid == 9
    one.send(success(9, b"answer to the callback"))
    server.wait_calls(2)
    assert server.calls[1].payload == success(9, b"answer to the callback")


def test_gss_calls_pass_unchanged_and_in_order(road, rpc_client):
    port, server, _ = road(lambda request, connection: success(request.xid))
    sent = [
        call(
            1000 + n,
            rpc.NFS,
            3,
            rpc.GETATTR,
            opaque(b"h"),
            u32(rpc.RPCSEC_GSS) + opaque(u32(1, 0, n, 1) + opaque(b"context")),
            u32(rpc.RPCSEC_GSS) + opaque(b"mic%05d" % n),
        )
        for n in range(64)
    ]
    one = rpc_client(port)
    one.sock.sendall(b"".join(map(rpc.record, sent)))
    assert sorted(one.reply().xid for _ in sent) == list(range(1000, 1064))
    assert [c.payload for c in server.calls] == sent


def test_auth_tls_probe_is_answered_no_and_never_forwarded(road, rpc_client):
    port, server, _ = road()
    one = rpc_client(port)
    one.send(call(1, rpc.NFS, 3, rpc.NULL, b"", u32(rpc.AUTH_TLS, 0)))
    answer = one.receive()
    assert rpc.Reply(answer).xid == 1
    assert b"STARTTLS" not in answer
    assert server.calls == []
    one.nfs3(rpc.NULL)  # the connection goes on without TLS


# ------------------------------------------------ bad calls


def test_other_rpc_version_is_denied_with_the_range(road, rpc_client):
    port, server, _ = road()
    one = rpc_client(port)
    one.send(call(4, rpc.NFS, 3, rpc.NULL, rpc_version=3))
    reply = one.reply()
    assert (reply.xid, reply.accepted, reply.reject) == (4, False, 0)
    assert (reply.detail, reply.reader.u32()) == (2, 2)
    assert server.calls == []


def test_unknown_program_and_version_are_said(road, rpc_client):
    """Answered by the proxy, or by a server that was asked and says what servers say."""

    def handler(request, connection):
        if request.program != rpc.NFS:
            return rpc.refusal(request.xid, rpc.PROG_UNAVAIL)
        return rpc.refusal(request.xid, rpc.PROG_MISMATCH, 3, 4)

    port, _, _ = road(handler)
    one = rpc_client(port)
    assert one.ask(0x20001234, 1, 0).status == rpc.PROG_UNAVAIL
    reply = one.ask(rpc.NFS, 2, 0)
    assert (reply.status, reply.mismatch) == (rpc.PROG_MISMATCH, (3, 4))


def test_unknown_procedure_is_forwarded_or_proc_unavail(road, rpc_client):
    port, _, _ = road(lambda request, connection: rpc.refusal(request.xid, rpc.PROC_UNAVAIL))
    assert rpc_client(port).nfs3(99).status == rpc.PROC_UNAVAIL


FORMS = {
    "GETATTR": call(1, rpc.NFS, 3, rpc.GETATTR, opaque(b"h" * 33)),
    "READ": call(
        1,
        rpc.NFS,
        3,
        rpc.READ,
        rpc.read_arguments(b"h" * 64, 1 << 40, 4096),
        rpc.auth_sys(5, 6, "machine", range(16)),
    ),
    "WRITE": call(1, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(b"h" * 28, 0, b"data" * 5)),
    "LOOKUP": call(1, rpc.NFS, 3, rpc.LOOKUP, opaque(b"h") + opaque("name")),
    "MNT": call(1, rpc.MOUNT, 3, 1, opaque("/export/path")),
    "COMPOUND": call(
        1,
        rpc.NFS,
        4,
        1,
        rpc.compound_arguments(
            1,
            u32(53) + b"s" * 16 + u32(1, 0, 0, 0),
            u32(22) + opaque(b"h" * 40),
            u32(25) + b"i" * 16 + u64(0) + u32(4096),
            tag="tag",
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_truncation_is_answered_or_closed(road, rpc_client, form):
    port, _, proxy = road(lambda request, connection: rpc.refusal(request.xid, rpc.GARBAGE_ARGS))
    whole = FORMS[form]
    for size in range(0, len(whole), 1 if len(whole) < 160 else 4):
        one = rpc_client(port)
        one.send(whole[:size])
        try:
            assert one.reply().xid == 1
        except rpc.Ended:
            pass
        one.close()
    rpc_client(port).nfs3(rpc.NULL)
    assert proxy.process.running()


def test_lengths_that_lie_are_answered_or_closed(road, rpc_client):
    port, server, _ = road(lambda request, connection: rpc.refusal(request.xid, rpc.GARBAGE_ARGS))
    head = u32(1, rpc.CALL, 2, rpc.NFS, 3, rpc.GETATTR)
    for bad in (
        u32(rpc.AUTH_SYS, 0xFFFFFFFF),
        u32(rpc.AUTH_SYS, 401) + bytes(404),
        u32(rpc.AUTH_SYS, 4) + u32(0),
        rpc.auth_sys() + u32(0, 0xFFFFFFFC),
        rpc.auth_sys() + rpc.NO_AUTH + u32(0xFFFFFFFF),
        rpc.auth_sys() + rpc.NO_AUTH + u32(65) + bytes(68),
        u32(rpc.AUTH_SYS) + opaque(u32(0, 0x7FFFFFFF) + bytes(40)),
    ):
        one = rpc_client(port)
        one.send(head + bad)
        try:
            assert one.reply().xid == 1
        except rpc.Ended:
            pass
        one.close()
    rpc_client(port).nfs3(rpc.NULL)


def test_unknown_compound_operation_passes_unchanged(road, rpc_client):
    port, server, _ = road(
        lambda request, connection: success(request.xid, u32(10044) + opaque("t") + u32(0))
    )
    payload = call(
        3,
        rpc.NFS,
        4,
        1,
        rpc.compound_arguments(1, rpc.PUTROOTFH, u32(4242) + b"whatever", rpc.GETFH, tag="t"),
    )
    one = rpc_client(port)
    one.send(payload)
    assert one.reply().results.u32() == 10044
    assert server.calls[0].payload == payload


def test_reply_to_no_call_is_not_passed_on_as_anothers(road, rpc_client):
    """A server's reply with an XID nobody asked: the client must not be told of it, and the right
    one still comes."""

    def handler(request, connection):
        connection.send(success(request.xid + 1000, b"to nobody"))
        return success(request.xid)

    port, server, _ = road(handler)
    one = rpc_client(port)
    one.send(call(1, rpc.NFS, 3, rpc.GETATTR, opaque(b"h")))
    try:
        assert one.reply().xid == 1
    except rpc.Ended:
        pass  # closing the server that speaks nonsense is right too
    rpc_client(port).nfs3(rpc.NULL)
