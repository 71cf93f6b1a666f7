# SPDX-License-Identifier: Apache-2.0
"""NFS connections that come and go, and calls that are refused: nothing is lost in silence, nothing answered falsely."""
import socket

import pytest

from lab import process, rpc
from lab.rpc import call, opaque, success, u32
from lab.spillway import nfs_config


@pytest.fixture
def road(spillway, rpc_server):
    def build(handler=None, pool=None, listener=None, server=None):
        backend = rpc_server(handler)
        port = process.free_port()
        return port, backend, spillway(nfs_config([backend.address], port, pool, listener, server))
    return build


def getattr_call(xid, uid=0):
    return call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(b"h"), rpc.auth_sys(uid))


# ------------------------------------------------ closing

def test_client_that_closes_closes_its_server_connection(road, rpc_client):
    port, server, proxy = road()
    one, other = rpc_client(port), rpc_client(port)
    one.nfs3(rpc.NULL), other.nfs3(rpc.NULL)
    one.close()
    server.until(lambda: server.open == 1, "the closed client's server connection closed")
    other.nfs3(rpc.NULL)


def test_client_gone_with_calls_in_flight_frees_the_slots(road, rpc_client):
    """What the server works on keeps its slot until it is done; what only waited is gone at once or served in vain."""
    port, server, proxy = road(server={"depth": 4})
    server.pause()
    one = rpc_client(port)
    for xid in range(1, 11):
        one.send(getattr_call(xid))
    proxy.wait_metric("spillway_pool_outstanding", 4, pool="farm")
    proxy.wait_metric("spillway_pool_queue_length", 6, pool="farm")
    one.close()
    server.wait_calls(4)
    server.resume()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    server.until(lambda: server.open == 0, "the server connection closed")
    rpc_client(port).nfs3(rpc.NULL)


def test_client_reset_with_calls_queued_cancels_them(road, rpc_client):
    port, server, proxy = road(server={"depth": 1})
    server.pause()
    one, other = rpc_client(port), rpc_client(port)
    other.send(getattr_call(1))
    server.wait_calls(1)
    for xid in range(1, 6):
        one.send(getattr_call(xid))
    proxy.wait_metric("spillway_pool_queue_length", 5, pool="farm")
    one.reset()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    server.resume()
    assert other.reply().xid == 1
    assert len(server.calls) == 1


def test_half_closed_client_gets_its_reply_or_a_close(road, rpc_client):
    port, server, _ = road()
    server.pause()
    one = rpc_client(port)
    one.send(getattr_call(1))
    server.wait_calls(1)
    one.sock.shutdown(socket.SHUT_WR)
    server.resume()
    try:
        assert one.reply().xid == 1
        assert one.closed()
    except rpc.Ended:
        pass


def test_idle_close_by_the_server_loses_nothing(road, rpc_client):
    port, server, _ = road()
    one = rpc_client(port)
    one.nfs3(rpc.NULL)
    server.drop_connections()
    server.until(lambda: server.open == 0, "closed")
    try:
        one.nfs3(rpc.NULL)      # over a new server connection,
    except (rpc.Ended, OSError):
        rpc_client(port).nfs3(rpc.NULL)     # or the client is told by a close and comes again


@pytest.mark.parametrize("procedure", [rpc.GETATTR, rpc.REMOVE], ids=["idempotent", "not idempotent"])
def test_server_that_dies_with_calls_in_flight_is_never_silence(road, rpc_client, procedure):
    port, server, proxy = road(lambda request, connection: success(request.xid, u32(0)))
    server.pause()
    one = rpc_client(port)
    sent = [call(xid, rpc.NFS, 3, procedure, opaque(b"h") + opaque("name")) for xid in range(1, 6)]
    for payload in sent:
        one.send(payload)
    server.wait_calls(5)
    server.drop_connections()
    server.resume()
    try:
        # either sent again as they were, each answered once ...
        assert sorted(one.reply().xid for _ in sent) == [1, 2, 3, 4, 5]
        assert {c.payload for c in server.calls} == set(sent)
    except rpc.Ended:
        pass                    # ... or the client's connection closes, so that the client retransmits
    rpc_client(port).nfs3(rpc.NULL)
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")


def test_retransmission_on_a_new_connection_gets_a_reply(road, rpc_client):
    port, server, _ = road()
    server.pause()
    one = rpc_client(port)
    one.send(getattr_call(77))
    server.wait_calls(1)
    one.close()
    two = rpc_client(port)
    two.send(getattr_call(77))
    server.resume()
    assert two.reply().xid == 77


def test_dead_server_closes_the_client_or_keeps_it_waiting_never_lies(spillway, rpc_client):
    port = process.free_port()
    proxy = spillway(nfs_config([f"127.0.0.1:{process.free_port()}"], port, {"retry": {"attempts": 2, "dead-for": "200ms"}}))
    one = rpc_client(port)
    one.send(getattr_call(1))
    proxy.wait_metric("spillway_server_connect_errors_total", lambda count: count >= 1, pool="farm")
    one.sock.settimeout(1)
    try:
        status = one.reply().results.u32()
        assert status == rpc.NFS3ERR_JUKEBOX
    except (rpc.Ended, TimeoutError):
        pass
    assert proxy.process.running()


# ------------------------------------------------ refusing

V3_SHAPES = {
    # procedure: (arguments after the handle, what follows the status in a failed result)
    rpc.GETATTR: (b"", ""), rpc.SETATTR: (u32(0, 0, 0, 0, 0, 0, 0), "w"), rpc.LOOKUP: (opaque("n"), "p"),
    rpc.ACCESS: (u32(1), "p"), rpc.READLINK: (b"", "p"), rpc.READ: (u32(0, 0, 10), "p"),
    rpc.WRITE: (u32(0, 0, 4, 2) + opaque(b"abcd"), "w"), rpc.CREATE: (opaque("n") + u32(0, 0, 0, 0, 0, 0, 0), "w"),
    rpc.MKDIR: (opaque("n") + u32(0, 0, 0, 0, 0, 0), "w"), rpc.SYMLINK: (opaque("n") + u32(0, 0, 0, 0, 0, 0) + opaque("t"), "w"),
    rpc.MKNOD: (opaque("n") + u32(7, 0, 0, 0, 0, 0, 0), "w"), rpc.REMOVE: (opaque("n"), "w"), rpc.RMDIR: (opaque("n"), "w"),
    rpc.RENAME: (opaque("n") + opaque(b"h") + opaque("m"), "ww"), rpc.LINK: (opaque(b"h") + opaque("n"), "pw"),
    rpc.READDIR: (u32(0, 0, 0, 0, 1000), "p"), rpc.READDIRPLUS: (u32(0, 0, 0, 0, 1000, 1000), "p"), rpc.FSSTAT: (b"", "p"),
    rpc.FSINFO: (b"", "p"), rpc.PATHCONF: (b"", "p"), rpc.COMMIT: (u32(0, 0, 10), "w"),
}


@pytest.fixture
def full(road, rpc_client):
    """A pool whose only slot and only place in the queue are taken; gives (port, server, proxy)."""
    port, server, proxy = road(lambda request, connection: success(request.xid, u32(0) + opaque("") + u32(0)),
                               pool={"queue": {"limit": 1}}, server={"depth": 1})
    server.pause()
    filler = rpc_client(port)
    filler.send(getattr_call(1))
    server.wait_calls(1)
    filler.send(getattr_call(2))
    proxy.wait_metric("spillway_pool_queue_length", 1, pool="farm")
    yield port, server, proxy
    server.resume()
    assert sorted([filler.reply().xid, filler.reply().xid]) == [1, 2]


def test_jukebox_has_the_right_shape_for_every_procedure(full, rpc_client):
    port, server, proxy = full
    one = rpc_client(port)
    for procedure, (arguments, shape) in V3_SHAPES.items():
        results = one.nfs3(procedure, opaque(b"h") + arguments).results
        assert results.u32() == rpc.NFS3ERR_JUKEBOX, procedure
        for part in shape:
            results.wcc_data() if part == "w" else results.post_op_attr()
        assert results.ended(), f"procedure {procedure}: bytes too many"
    assert len(server.calls) == 1
    assert proxy.metric("spillway_pool_refused_total", pool="farm") == len(V3_SHAPES)


SEQUENCE = u32(53) + b"session-id-bytes" + u32(1, 0, 0, 0)


def test_v41_delay_is_the_status_of_sequence(full, rpc_client):
    port, server, _ = full
    results = rpc_client(port).compound(1, SEQUENCE, rpc.PUTROOTFH, tag="abc")
    assert results.u32() == rpc.NFS4ERR_DELAY
    assert results.opaque() == b"abc"
    assert (results.u32(), results.u32(), results.u32()) == (1, 53, rpc.NFS4ERR_DELAY)
    assert results.ended() and len(server.calls) == 1


def test_v40_delay_is_the_status_of_the_first_operation(full, rpc_client):
    port, server, _ = full
    results = rpc_client(port).compound(0, rpc.PUTROOTFH, rpc.GETFH, tag="abc")
    assert results.u32() == rpc.NFS4ERR_DELAY
    results.opaque()
    assert (results.u32(), results.u32(), results.u32()) == (1, 24, rpc.NFS4ERR_DELAY)
    assert results.ended() and len(server.calls) == 1


CLOSE_WITH_SEQID = u32(4, 9) + b"stateid-16-bytes"


@pytest.mark.parametrize("what", ["v3 NULL", "v4.0 with a seqid", "v4.1 without SEQUENCE"])
def test_calls_without_a_safe_word_are_slowed_not_refused(full, rpc_client, what):
    port, server, proxy = full
    one = rpc_client(port)
    if what == "v3 NULL":
        one.send(call(5, rpc.NFS, 3, rpc.NULL))
    elif what == "v4.0 with a seqid":
        one.send(call(5, rpc.NFS, 4, 1, rpc.compound_arguments(0, u32(22) + opaque(b"h"), CLOSE_WITH_SEQID)))
    else:
        one.send(call(5, rpc.NFS, 4, 1, rpc.compound_arguments(1, u32(42) + b"verifier" + opaque("owner") + u32(0, 0, 0))))
    one.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        one.receive()           # no answer yet, and no close
    one.sock.settimeout(process.PATIENCE_S)
    server.resume()
    two = rpc.Records(one.sock)     # a reader that timed out can't be used again
    assert rpc.Reply(two.receive()).xid == 5
    assert proxy.metric("spillway_pool_refused_total", pool="farm") == 0, "what is held is not refused"


def test_draining_a_server_lets_its_calls_end(spillway, rpc_server, rpc_client):
    """What the server has is answered; only then the connection ends, so that nothing is asked for twice."""
    servers = {"a": rpc_server(), "b": rpc_server()}
    port = process.free_port()
    proxy = spillway(nfs_config([{"name": n, "address": s.address} for n, s in servers.items()], port))
    for server in servers.values():
        server.pause()
    one = rpc_client(port)
    one.send(getattr_call(1))
    process.wait_until(lambda: sum(len(s.calls) for s in servers.values()) == 1, "the call at a server")
    mine = next(n for n, s in servers.items() if s.calls)
    proxy.ctl("drain", f"farm/{mine}")
    one.send(getattr_call(2))
    proxy.wait_log("takes no more calls")
    servers[mine].resume()
    assert one.reply().xid == 1
    assert one.closed()
    assert sum(len(s.calls) for s in servers.values()) == 1, "the second call went nowhere"
