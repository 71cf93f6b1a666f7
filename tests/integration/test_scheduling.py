# SPDX-License-Identifier: Apache-2.0
"""Shares between flows on the real road, HTTP and NFS: exact orders with a held server, ratios
under load."""
import threading

import pytest

from lab import process, rpc
from lab.http import answer, request
from lab.load import Load, Service
from lab.spillway import http_config, nfs_config

TWO_TO_ONE = [
    {"name": "a", "weight": 2, "match": {"header": {"X-Flow": "a"}}},
    {"name": "b", "weight": 1, "match": {"header": {"X-Flow": "b"}}},
]
TWO_TO_ONE_NFS = [
    {"name": "a", "weight": 2, "match": {"uid": 1001}},
    {"name": "b", "weight": 1, "match": {"uid": 1002}},
]


def head_of(requests, count):
    """How often each letter is among the first `count` after the request that held the server."""
    letters = [r.target.decode()[1] for r in requests[1 : 1 + count]]
    return {letter: letters.count(letter) for letter in sorted(set(letters))}


class HeldFarm:
    """A server of depth 1 that works one request at a time, once released; requests queue at the
    proxy."""

    def __init__(self, spillway, origin, client, pool, listener=None):
        self.go = threading.Event()
        self.server = origin(lambda exchange: self.go.wait(process.PATIENCE_S) and answer())
        self.port = process.free_port()
        self.proxy = spillway(
            http_config([self.server.address], self.port, pool, listener, {"depth": 1})
        )
        self.client, self.waiting = client, []
        self.queued = 0
        self.send("/-", [("X-Flow", "holds-the-server")])
        self.server.wait_requests(1)

    def send(self, target, fields=(), in_turn=False, method="GET", source=None):
        one = self.client(self.port, source=source)
        one.send(request(method, target, fields))
        self.waiting.append(one)
        if in_turn:
            self.queued += 1
            self.proxy.wait_metric("spillway_pool_queue_length", self.queued, pool="farm")

    def release(self):
        """Lets the server work; returns its requests in the order it got them."""
        expected = len(self.waiting) - 1
        self.proxy.wait_metric("spillway_pool_queue_length", expected, pool="farm")
        self.go.set()
        for one in self.waiting:
            assert one.reply().status == 200
        return self.server.requests


@pytest.fixture
def held(spillway, origin, client):
    farms = []

    def build(pool, listener=None):
        farms.append(HeldFarm(spillway, origin, client, pool, listener))
        return farms[-1]

    yield build
    for farm in farms:
        farm.go.set()


# ------------------------------------------------ exact orders


FAIR = [
    "sfq", "sfqd", "min-sfqd", "fsfq", "rw", "hybrid", "virtual-clock", "wfq", "mclock", "2dfq",
]


@pytest.mark.parametrize("algorithm", FAIR)
def test_backlogged_flows_are_served_by_weight(held, algorithm):
    farm = held({"scheduler": {"algorithm": algorithm}, "flows": TWO_TO_ONE})
    for _ in range(20):
        farm.send("/a", [("X-Flow", "a")])
    for _ in range(20):
        farm.send("/b", [("X-Flow", "b")])
    requests = farm.release()
    assert head_of(requests, 15) == {"a": 10, "b": 5}
    assert head_of(requests, 30) == {"a": 20, "b": 10}


def test_fifo_keeps_the_order_of_arrival(held):
    farm = held({"scheduler": {"algorithm": "fifo"}, "flows": TWO_TO_ONE})
    letters = "bbabbbaabb"
    for letter in letters:
        farm.send(f"/{letter}", [("X-Flow", letter)], in_turn=True)
    assert "".join(r.target.decode()[1] for r in farm.release()[1:]) == letters


def test_order_within_a_flow_is_kept(held):
    farm = held({"flows": TWO_TO_ONE})
    for number in range(10):
        farm.send(f"/a{number}", [("X-Flow", "a")], in_turn=True)
    assert [r.target for r in farm.release()[1:]] == [b"/a%d" % n for n in range(10)]


def test_each_value_of_a_header_is_a_flow_of_its_own(held):
    farm = held({"flows": [{"name": "tenants", "weight": 1, "by": {"header": "X-Tenant"}}]})
    for _ in range(30):
        farm.send("/a", [("X-Tenant", "greedy")])
    for letter in "bc":
        for _ in range(5):
            farm.send(f"/{letter}", [("X-Tenant", letter)])
    assert head_of(farm.release(), 15) == {"a": 5, "b": 5, "c": 5}


def test_each_client_address_is_a_flow_of_its_own(held):
    farm = held({"flows": [{"name": "clients", "weight": 1, "by": "client-address"}]})
    for _ in range(20):
        farm.send("/a", source="127.0.0.2")
    for _ in range(6):
        farm.send("/b", source="127.0.0.3")
    assert head_of(farm.release(), 12) == {"a": 6, "b": 6}


def test_keys_beyond_the_limit_share_one_flow(held):
    farm = held(
        {"flows": [{"name": "tenants", "weight": 1, "by": {"header": "X-Tenant"}, "key-limit": 2}]}
    )
    for letter in "ab":  # these two have flows of their own
        farm.send(f"/{letter}", [("X-Tenant", letter)], in_turn=True)
    for letter in "abcd":
        for _ in range(7):
            farm.send(f"/{letter}", [("X-Tenant", letter)])
    counts = head_of(farm.release(), 15)
    shared = counts.get("c", 0) + counts.get(
        "d", 0
    )  # one less: the request that held the server was charged to it
    assert abs(counts["a"] - 5) <= 1 and abs(counts["b"] - 5) <= 1 and abs(shared - 5) <= 1, counts


def test_dear_requests_count_by_their_cost(held):
    farm = held(
        {
            "flows": [dict(f, weight=1) for f in TWO_TO_ONE],
            "cost": {"by": "table", "table": {"GET": 1, "DELETE": 4}},
        }
    )
    for _ in range(24):
        farm.send("/a", [("X-Flow", "a")])
        farm.send("/b", [("X-Flow", "b")], method="DELETE")
    counts = head_of(farm.release(), 25)
    assert abs(counts["a"] - 20) <= 1 and abs(counts["b"] - 5) <= 1, counts


def test_weight_set_while_running_counts_from_then_on(held):
    farm = held({"flows": TWO_TO_ONE})
    farm.proxy.ctl("set", "weight", "farm/a", "1")
    farm.proxy.ctl("set", "weight", "farm/b", "3")
    for _ in range(20):
        farm.send("/a", [("X-Flow", "a")])
        farm.send("/b", [("X-Flow", "b")])
    counts = head_of(farm.release(), 20)
    assert abs(counts["a"] - 5) <= 1 and abs(counts["b"] - 15) <= 1, counts


def test_algorithm_set_while_requests_wait_loses_none(held):
    farm = held({"flows": TWO_TO_ONE})
    for _ in range(15):
        farm.send("/a", [("X-Flow", "a")])
        farm.send("/b", [("X-Flow", "b")])
    farm.proxy.wait_metric("spillway_pool_queue_length", 30, pool="farm")
    for algorithm in ("fifo", "min-sfqd", "sfq", "fifo", "sfqd"):
        farm.proxy.ctl("set", "algorithm", "farm", algorithm)
    assert head_of(farm.release(), 30) == {"a": 15, "b": 15}


def test_idle_flow_saves_up_nothing(held):
    """A flow that slept does not get a burst for the time it slept."""
    farm = held({"flows": [dict(f, weight=1) for f in TWO_TO_ONE]})
    for _ in range(20):
        farm.send("/a", [("X-Flow", "a")])
    farm.proxy.wait_metric("spillway_pool_queue_length", 20, pool="farm")
    for _ in range(20):
        farm.send("/b", [("X-Flow", "b")])
    counts = head_of(farm.release(), 20)
    assert abs(counts["a"] - counts["b"]) <= 1, counts


def test_nfs_calls_of_backlogged_uids_are_served_by_weight(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(
        nfs_config([server.address], port, {"flows": TWO_TO_ONE_NFS}, None, {"depth": 1})
    )
    server.pause()
    clients = {1001: rpc_client(port), 1002: rpc_client(port), 0: rpc_client(port)}
    clients[0].send(rpc.call(1, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(b"h")))
    server.wait_calls(1)
    for xid in range(1, 31):
        for uid in (1001, 1002):
            clients[uid].send(
                rpc.call(xid, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(b"h"), rpc.auth_sys(uid))
            )
    proxy.wait_metric("spillway_pool_queue_length", 60, pool="farm")
    server.resume()
    for uid in (1001, 1002):
        for _ in range(30):
            clients[uid].reply()
    uids = [c.uid() for c in server.calls[1:31]]
    assert (uids.count(1001), uids.count(1002)) == (20, 10)


# ------------------------------------------------ ratios under load

# The server is the bottleneck (3,000 requests per second at each depth), so that requests wait at
# the proxy.
DEPTHS = [(1, "333us"), (8, "2666us"), (32, "10666us")]
REQUESTS = 10000


def ratio_under_load(proxy):
    """Completions of a over those of b, over the next REQUESTS completions, both flows backlogged
    throughout."""

    def counts():
        metrics = proxy.metrics()
        done = [metrics("spillway_flow_requests_total", flow=flow) for flow in "ab"]
        queued = [metrics("spillway_flow_queue_length", flow=flow) for flow in "ab"]
        return done, queued

    process.wait_until(
        lambda: min(counts()[1]) >= 10 and min(counts()[0]) > 100, "both flows are backlogged"
    )
    first, _ = counts()
    starved = []

    def enough():
        done, queued = counts()
        if min(queued) < 1:
            starved.append((done, queued))
        return sum(done) - sum(first) >= REQUESTS

    process.wait_until(enough, f"{REQUESTS} completions", 2 * process.PATIENCE_S, every_s=0.05)
    last, _ = counts()
    assert not starved, f"a flow had nothing queued, so this measured nothing: {starved[:3]}"
    return (last[0] - first[0]) / (last[1] - first[1])


@pytest.mark.parametrize("depth, service", DEPTHS)
def test_http_shares_under_load(spillway, closing, depth, service):
    backend = closing(Service(depth, service))
    port = process.free_port()
    proxy = spillway(
        http_config(
            [backend.http],
            port,
            {"flows": TWO_TO_ONE, "scheduler": {"algorithm": "sfqd"}},
            None,
            {"depth": depth},
        )
    )
    load = closing(
        Load(
            [
                f"name={flow},proto=http,target=127.0.0.1:{port},concurrency=96,"
                f"header=X-Flow:{flow}"
                for flow in "ab"
            ]
        )
    )
    assert ratio_under_load(proxy) == pytest.approx(2, rel=0.02)
    figures = load.finish()
    assert (
        sum(n for f in figures.values() for kind, n in f["outcomes"].items() if kind != "ok") == 0
    ), figures


@pytest.mark.parametrize("depth, service", DEPTHS)
def test_nfs_shares_under_load(spillway, closing, depth, service):
    backend = closing(Service(depth, service))
    port = process.free_port()
    proxy = spillway(
        nfs_config(
            [backend.nfs],
            port,
            {"flows": TWO_TO_ONE_NFS, "scheduler": {"algorithm": "sfqd"}},
            None,
            {"depth": depth},
        )
    )
    load = closing(
        Load(
            [
                f"name={flow},proto=nfs,target=127.0.0.1:{port},concurrency=96,"
                f"op=read,bytes=4096,uid={uid}"
                for flow, uid in (("a", 1001), ("b", 1002))
            ]
        )
    )
    assert ratio_under_load(proxy) == pytest.approx(2, rel=0.02)
    figures = load.finish()
    assert (
        sum(n for f in figures.values() for kind, n in f["outcomes"].items() if kind != "ok") == 0
    ), figures


def test_lone_flow_gets_everything(spillway, closing):
    """Work conservation: half of the weight unused, none of the server unused."""
    backend = closing(Service(4, "4ms"))
    port = process.free_port()
    proxy = spillway(http_config([backend.http], port, {"flows": TWO_TO_ONE}, None, {"depth": 4}))
    closing(Load([f"name=b,proto=http,target=127.0.0.1:{port},concurrency=32,header=X-Flow:b"]))
    process.wait_until(
        lambda: proxy.metric("spillway_flow_requests_total", flow="b") > 200, "load runs"
    )
    samples = [proxy.metric("spillway_pool_outstanding", pool="farm") for _ in range(100)]
    assert sum(samples) / len(samples) > 3.9
