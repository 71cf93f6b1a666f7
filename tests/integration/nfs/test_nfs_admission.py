# SPDX-License-Identifier: Apache-2.0
"""Admission of NFS calls: slowed by default, refused only by words that a client may take, and nothing
lost or executed twice. `tail` is the policy where a test has to know what will be put out."""
import json
import os
import signal

import pytest

from lab import nfs, process, rpc
from lab.load import Load, Service
from lab.rpc import call, opaque, u32
from lab.spillway import nfs_config

FLOWS = [
    {"name": "noisy", "weight": 1, "match": {"uid": 1}},
    {"name": "quiet", "weight": 1, "match": {"uid": 2}},
]


@pytest.fixture
def road(spillway, rpc_server):
    """road(admission) gives (port, server, proxy): one slot, held, so that calls wait."""

    def build(admission, **top):
        server = rpc_server()
        port = process.free_port()
        pool = {"admission": admission, "flows": FLOWS}
        proxy = spillway(nfs_config([server.address], port, pool, server={"depth": 1}, **top))
        server.pause()
        return port, server, proxy

    return build


def getattr_call(xid, uid=1):
    return call(xid, rpc.NFS, 3, rpc.GETATTR, opaque(b"h"), rpc.auth_sys(uid))


def flow(proxy, name):
    return next(one for one in proxy.show("flows") if one["name"] == name)


def queue_up(proxy, server, client, count, uid=1):
    """One call at the server, the others in the queue."""
    for xid in range(1, count + 1):
        client.send(getattr_call(xid, uid))
    proxy.wait_metric("spillway_pool_offered_total", count, pool="farm")
    server.wait_calls(1)


def test_marked_by_default_and_everything_is_answered(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 2})
    one = rpc_client(port)
    queue_up(proxy, server, one, 6)
    assert flow(proxy, "noisy")["marked"] == 3
    assert flow(proxy, "noisy")["admission_refused"] == 0
    server.resume()
    assert sorted(one.reply().xid for _ in range(6)) == [1, 2, 3, 4, 5, 6]
    assert sorted(c.xid for c in server.calls) == [1, 2, 3, 4, 5, 6]
    one.send(getattr_call(7))  # read again after the pause
    assert one.reply().xid == 7


def test_refuse_answers_jukebox_and_the_meters_agree(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 2, "action": "refuse"})
    one = rpc_client(port)
    queue_up(proxy, server, one, 6)
    for _ in range(3):
        reply = one.reply()
        assert reply.xid in (4, 5, 6)
        assert reply.results.u32() == rpc.NFS3ERR_JUKEBOX
    assert flow(proxy, "noisy")["admission_refused"] == 3
    assert flow(proxy, "noisy")["marked"] == 0
    server.resume()
    assert sorted(one.reply().xid for _ in range(3)) == [1, 2, 3]
    assert len(server.calls) == 3


def test_the_flow_that_exceeds_its_share_is_put_out(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 3, "action": "refuse"})
    noisy, quiet = rpc_client(port), rpc_client(port)
    queue_up(proxy, server, noisy, 4)
    quiet.send(getattr_call(9, uid=2))
    reply = noisy.reply()
    assert (reply.xid, reply.results.u32()) == (4, rpc.NFS3ERR_JUKEBOX)
    assert flow(proxy, "quiet")["admission_refused"] == 0
    server.resume()
    assert quiet.reply().xid == 9
    assert sorted(noisy.reply().xid for _ in range(3)) == [1, 2, 3]


CLOSE_WITH_SEQID = u32(4, 9) + b"stateid-16-bytes"
SEQUENCE = u32(53) + b"session-id-bytes" + u32(1, 0, 0, 0)


@pytest.mark.parametrize("what", ["v3 NULL", "v4.0 with a seqid", "v4.1 without SEQUENCE"])
def test_a_call_without_a_safe_word_waits_and_is_marked(road, rpc_client, what):
    port, server, proxy = road({"algorithm": "tail", "limit": 1, "action": "refuse"})
    server.handler = lambda request, connection: rpc.success(request.xid, u32(0) + opaque("") + u32(0))
    filler, one = rpc_client(port), rpc_client(port)
    queue_up(proxy, server, filler, 2)
    if what == "v3 NULL":
        one.send(call(5, rpc.NFS, 3, rpc.NULL, b"", rpc.auth_sys(1)))
    elif what == "v4.0 with a seqid":
        arguments = rpc.compound_arguments(0, u32(22) + opaque(b"h"), CLOSE_WITH_SEQID)
        one.send(call(5, rpc.NFS, 4, 1, arguments, rpc.auth_sys(1)))
    else:
        operation = u32(42) + b"verifier" + opaque("owner") + u32(0, 0, 0)
        one.send(call(5, rpc.NFS, 4, 1, rpc.compound_arguments(1, operation), rpc.auth_sys(1)))
    proxy.wait_metric("spillway_pool_marked_total", 1, pool="farm")
    assert flow(proxy, "noisy")["admission_refused"] == 0
    server.resume()
    assert one.reply().xid == 5
    assert sorted(filler.reply().xid for _ in range(2)) == [1, 2]
    assert len([c for c in server.calls if c.xid == 5]) == 1


def test_v4_delay_where_it_is_safe(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 1, "action": "refuse"})
    filler = rpc_client(port)
    queue_up(proxy, server, filler, 2)
    one = rpc_client(port, uid=1)
    results = one.compound(1, SEQUENCE, rpc.PUTROOTFH, tag="abc")
    assert (results.u32(), results.opaque()) == (rpc.NFS4ERR_DELAY, b"abc")
    assert (results.u32(), results.u32(), results.u32()) == (1, 53, rpc.NFS4ERR_DELAY)
    results = one.compound(0, rpc.PUTROOTFH, rpc.GETFH)
    assert results.u32() == rpc.NFS4ERR_DELAY
    server.resume()
    assert sorted(filler.reply().xid for _ in range(2)) == [1, 2]


def test_a_client_that_goes_while_it_is_slowed_leaves_nothing(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 1})
    one, two = rpc_client(port), rpc_client(port)
    queue_up(proxy, server, one, 5)
    assert flow(proxy, "noisy")["marked"] == 3
    one.close()
    server.resume()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    two.send(getattr_call(8))
    assert two.reply().xid == 8


def test_a_server_that_dies_while_clients_are_slowed(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 1})
    one = rpc_client(port)
    queue_up(proxy, server, one, 5)
    server.drop_connections()
    assert one.closed()
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    server.resume()
    two = rpc_client(port)
    two.send(getattr_call(8))
    assert two.reply().xid == 8


def test_draining_ends_though_clients_are_slowed(road, rpc_client):
    port, server, proxy = road({"algorithm": "tail", "limit": 1})
    one = rpc_client(port)
    queue_up(proxy, server, one, 5)
    proxy.process.send_signal(signal.SIGTERM)
    proxy.wait_log("drain")
    server.resume()
    assert sorted(one.reply().xid for _ in range(5)) == [1, 2, 3, 4, 5]
    assert one.closed()
    assert proxy.process.wait(process.PATIENCE_S) == 0


# ------------------------------------------------------------------ under load


@pytest.fixture
def loaded(spillway):
    """loaded(admission, flows...) runs them against 8 slots of 4 ms, to their end or that of
    `meanwhile`: (proxy, figures)."""
    running = []

    def build(admission, *flows, meanwhile=None, pool=None):
        service = Service(8, "4ms", "exponential")
        running.append(service)
        port = process.free_port()
        pool = {"admission": admission, "flows": FLOWS, **(pool or {})}
        proxy = spillway(nfs_config([service.nfs], port, pool, server={"depth": 8}))
        flows = [f"proto=nfs,target=127.0.0.1:{port},export=/export,{one}" for one in flows]
        load = Load(flows, "120s" if meanwhile else "4s")
        running.append(load)
        if meanwhile is None:
            return proxy, load.result()
        meanwhile(proxy)
        return proxy, load.finish()

    yield build
    for one in reversed(running):
        one.close()


DEEP = "name=noisy,uid=1,concurrency=64"


def test_deep_clients_are_slowed_and_nothing_is_lost(loaded):
    proxy, figures = loaded("duk", DEEP)
    done = figures["noisy"]
    assert done["outcomes"]["ok"] == done["offered"] > 0
    assert done["unfinished"] == 0
    one = flow(proxy, "noisy")
    assert one["admission_refused"] == 0
    assert one["offered"] == one["admitted"] == one["requests"]


def test_a_flow_within_its_share_is_neither_refused_nor_marked(loaded):
    """The noisy one offers ten times what the service can do (2000 a second), the quiet one a quarter
    of it."""
    proxy, figures = loaded(
        {"algorithm": "duk", "action": "refuse"},
        "name=noisy,uid=1,rate=20000,concurrency=4000",
        "name=quiet,uid=2,rate=500",
    )
    assert flow(proxy, "noisy")["admission_refused"] > 1000
    quiet = flow(proxy, "quiet")
    assert quiet["admission_refused"] <= quiet["offered"] / 100
    assert quiet["marked"] == 0
    assert figures["quiet"]["outcomes"]["ok"] >= 0.99 * figures["quiet"]["offered"]


def test_policies_and_actions_switch_under_load(loaded):
    def switch(proxy):
        proxy.wait_metric("spillway_pool_requests_total", lambda n: n > 500, pool="farm")
        for policy in ["codel", "pie", "tail", "duk-literal", "none", "duk"]:
            for action in ["refuse", "mark"]:
                before = proxy.metric("spillway_pool_requests_total", pool="farm")
                proxy.ctl("set", "admission", "farm", policy)
                proxy.ctl("set", "admission-action", "farm", action)
                proxy.wait_metric(
                    "spillway_pool_requests_total", lambda n: n > before + 100, pool="farm"
                )

    proxy, figures = loaded("duk", DEEP, "name=quiet,uid=2,concurrency=4", meanwhile=switch)
    for name in ("noisy", "quiet"):
        done, one = figures[name], flow(proxy, name)
        refused, left = done["outcomes"]["refused"], done["unfinished"]
        assert done["outcomes"]["ok"] + refused + left == done["offered"]
        assert 0 <= one["admission_refused"] - refused <= left <= 64
        assert one["errors"] == one["queue_timeouts"] == 0


# ------------------------------------------------------------------ a real server


def test_data_is_whole_on_a_real_server_under_marks(spillway, ganesha, net):
    """Four mounts write and read back, every version verified, while nearly all of it is marked."""
    port = process.free_port()
    pool = {"admission": {"algorithm": "tail", "limit": 2}}
    proxy = spillway(nfs.proxy_config(port, pool=pool, server={"depth": 2}), net=net)
    path = os.path.join(process.scratch(), "summary.json")
    argv = [process.program("spillload"), "--json", path, "--duration", "2s", "--drain", "20s"]
    target = f"target={nfs.SERVER_ADDRESS}:{port},export={ganesha.folder}"
    for number in range(4):
        argv += [
            "--flow",
            f"name=w{number},proto=nfs,{target},concurrency=16,files=4,size=65536,set=s{number},"
            "mix=read:1 write:1,verify=yes",
        ]
    net.run(argv)
    with open(path) as file:
        flows = json.load(file)["flows"]
    for one in flows:
        assert one["outcomes"]["ok"] == one["offered"] > 0, one["outcomes"]
        assert one["unfinished"] == 0
    assert proxy.metric("spillway_pool_marked_total", pool="farm") > 0
    assert proxy.metric("spillway_pool_admission_refused_total", pool="farm") == 0
