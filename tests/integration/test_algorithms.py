# SPDX-License-Identifier: Apache-2.0
"""Every algorithm behind the real proxy: changes from one to the next under load, orders that hold
through them, limits and windows, and a slow server among fast ones."""
import itertools
import re

import pytest

from lab import process, rpc
from lab.http import request
from lab.load import Load, Service
from lab.spillway import http_config, nfs_config

ALGORITHMS = [
    "fifo", "sfq", "sfqd", "min-sfqd", "fsfq", "rw", "hybrid", "virtual-clock", "wfq", "edf", "scf",
    "leaky-bucket", "mclock", "2dfq",
]
# What each algorithm could go by, none of it so tight that it stops the load.
TERMS = {"target": "20ms", "reservation": "20/s", "limit": "20000/s"}
FLOWS = [
    dict({"name": "a", "weight": 2, "match": {"header": {"X-Flow": "a"}}}, **TERMS),
    {"name": "b", "weight": 1},
]
NFS_FLOWS = [
    dict({"name": "a", "weight": 2, "match": {"uid": 1001}}, **TERMS),
    {"name": "keyed", "by": "uid"},
]


def outcomes(figures):
    """(good, bad but for those that the end cut off) of each flow's figures."""
    return {
        name: (
            flow["outcomes"]["ok"],
            sum(n for kind, n in flow["outcomes"].items() if kind not in ("ok", "unfinished")),
        )
        for name, flow in figures.items()
    }


def test_help_and_refusal_name_them_all(spillway, closing):
    backend = closing(Service())
    proxy = spillway(http_config([backend.http], process.free_port()))
    failed = proxy.ctl("set", "algorithm", "farm", "lottery", check=False)
    assert failed.returncode == 1
    listed = failed.stderr.split("there are:")[1].split()
    assert sorted(listed) == sorted(ALGORITHMS)
    assert process.run([process.program("spillctl"), "set", "colour", "farm", "red"],
                       check=False).returncode == 64


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_serves_http_and_nfs_from_the_file(spillway, closing, algorithm):
    backend = closing(Service(4, "500us"))
    web, nas = process.free_port(), process.free_port()
    config = http_config([backend.http], web,
                         {"scheduler": {"algorithm": algorithm, "slack": 1}, "flows": FLOWS})
    array = nfs_config([backend.nfs], nas, {"scheduler": algorithm, "flows": NFS_FLOWS})
    config["listeners"] += [dict(array["listeners"][0], name="nas", pool="array")]
    config["pools"] += [dict(array["pools"][0], name="array")]
    proxy = spillway(config)
    assert [p["algorithm"] for p in proxy.show("pools")] == [algorithm] * 2
    load = closing(Load([
        f"name=a,proto=http,target=127.0.0.1:{web},concurrency=20,header=X-Flow:a",
        f"name=b,proto=http,target=127.0.0.1:{web},concurrency=20",
        f"name=na,proto=nfs,target=127.0.0.1:{nas},concurrency=20,op=read,uid=1001",
        f"name=nb,proto=nfs,target=127.0.0.1:{nas},concurrency=20,op=write,uid=1002",
    ], "60s"))
    for pool in ("farm", "array"):
        for flow in proxy.show("flows"):
            if flow["pool"] == pool:
                proxy.wait_metric("spillway_flow_requests_total", lambda n: n > 200, pool=pool,
                                  flow=flow["name"])
    for name, (good, bad) in outcomes(load.finish()).items():
        assert good > 100 and bad == 0, name
    for pool in ("farm", "array"):
        proxy.wait_metric("spillway_pool_outstanding", 0, pool=pool)
        proxy.wait_metric("spillway_pool_queue_length", 0, pool=pool)


def test_changes_under_load_lose_nothing(spillway, closing):
    """From each algorithm to the next, with weights, depths and limits, while requests run and
    wait: every request that the clients got an answer to was answered once by a server, and no
    other."""
    backend = closing(Service(8, "1ms", "exponential"))
    web, nas = process.free_port(), process.free_port()
    config = http_config([{"name": "s", "address": backend.http, "depth": 4}], web,
                         {"flows": FLOWS}, workers=2)
    array = nfs_config([{"name": "s", "address": backend.nfs, "depth": 4}], nas,
                       {"flows": NFS_FLOWS})
    config["listeners"] += [dict(array["listeners"][0], name="nas", pool="array")]
    config["pools"] += [dict(array["pools"][0], name="array")]
    proxy = spillway(config)
    load = closing(Load([
        f"name=a,proto=http,target=127.0.0.1:{web},concurrency=24,header=X-Flow:a",
        f"name=b,proto=http,target=127.0.0.1:{web},concurrency=24",
        f"name=na,proto=nfs,target=127.0.0.1:{nas},concurrency=24,op=read,uid=1001",
        f"name=nb,proto=nfs,target=127.0.0.1:{nas},concurrency=24,op=write,uid=1002",
    ], "120s"))
    for turn, algorithm in enumerate(ALGORITHMS + ALGORITHMS[::-2]):
        done = {pool: proxy.metric("spillway_pool_requests_total", pool=pool)
                for pool in ("farm", "array")}
        for pool in ("farm", "array"):
            proxy.ctl("set", "algorithm", pool, algorithm)
            proxy.ctl("set", "weight", f"{pool}/a", str(1 + turn % 5))
            proxy.ctl("set", "depth", f"{pool}/s", str(1 + turn % 7))
            proxy.ctl("set", "limit", f"{pool}/a", ["none", "9000/s"][turn % 2])
            proxy.ctl("set", "slack", pool, str(turn % 3))
        for pool, count in done.items():
            proxy.wait_metric("spillway_pool_requests_total", lambda n: n >= count + 50, pool=pool)
    counted = outcomes(load.finish())
    for name, (good, bad) in counted.items():
        assert good > 500 and bad == 0, name
    metrics = proxy.metrics()
    for pool, names in (("farm", ("a", "b")), ("array", ("na", "nb"))):
        proxy.wait_metric("spillway_pool_outstanding", 0, pool=pool)
        proxy.wait_metric("spillway_pool_queue_length", 0, pool=pool)
        answered = metrics("spillway_pool_requests_total", pool=pool)
        received = sum(counted[name][0] for name in names)
        # What was under way when the clients left, and the NFS clients' mounting.
        assert received <= answered <= received + 48 + 40
        assert metrics("spillway_pool_errors_total", pool=pool) == 0


def test_nfs_calls_of_one_connection_keep_their_order(spillway, rpc_server, rpc_client):
    """One client, one flow, depth 1: the server gets the calls as they were sent, whatever the
    algorithm is changed to while they wait."""
    server, port = rpc_server(), process.free_port()
    proxy = spillway(nfs_config([server.address], port, {"flows": NFS_FLOWS}, None, {"depth": 1}))
    server.pause()
    clients = {uid: rpc_client(port) for uid in (1001, 1002, 0)}

    def send(uid, number):
        mark = rpc.opaque(b"handle %d" % number)
        clients[uid].send(rpc.call(number, rpc.NFS, 3, rpc.GETATTR, mark, rpc.auth_sys(uid)))

    send(0, 0)
    server.wait_calls(1)
    for turn, algorithm in enumerate(ALGORITHMS):
        for uid, more in itertools.product((1001, 1002), range(5)):
            send(uid, 5 * turn + more)
        proxy.wait_metric("spillway_pool_queue_length", 10 * (turn + 1), pool="farm")
        proxy.ctl("set", "algorithm", "farm", algorithm)
    server.resume()
    count = 5 * len(ALGORITHMS)
    for uid, _ in itertools.product((1001, 1002), range(count)):
        clients[uid].reply()
    for uid in (1001, 1002):
        marks = [rpc.Reader(c.arguments).opaque() for c in server.calls[1:] if c.uid() == uid]
        assert marks == [b"handle %d" % n for n in range(count)]


# ------------------------------------------------ limits and windows


def test_a_held_request_goes_without_anything_else_happening(spillway, closing, client):
    """Nobody but the clock can let the second one go."""
    backend = closing(Service())
    port = process.free_port()
    proxy = spillway(http_config([backend.http], port, {
        "scheduler": "leaky-bucket", "flows": [{"name": "a", "limit": "5/s", "burst": 0}]},
        workers=2))
    clients = [client(port) for _ in range(4)]
    for one in clients:
        one.send(request())
    assert [one.reply().status for one in clients] == [200] * 4
    assert proxy.metric("spillway_flow_wait_seconds_sum", flow="a") >= 3 * 0.2


def test_over_the_limit_is_429_where_it_is_refused(spillway, closing, client):
    backend = closing(Service())
    port, log = process.free_port(), process.scratch() + "/access.log"
    proxy = spillway(http_config([backend.http], port, {
        "scheduler": {"algorithm": "mclock", "at-limit": "refuse"},
        "cost": {"by": "table", "table": {"GET": 1000, "PUT": 1}},
        "flows": [{"name": "a", "limit": "1/s", "burst": 0, "match": {"path": "/a"}}]},
        log={"access": log}))
    one = client(port)
    assert one.ask("GET", "/a").status == 200
    reply = one.ask("GET", "/a")
    assert reply.status == 429 and int(reply.get("Retry-After")) > 0
    assert b"limit" in reply.body
    assert one.ask("GET", "/other").status == 200
    assert proxy.metric("spillway_flow_at_limit_total", flow="a") == 1
    assert proxy.metric("spillway_flow_refused_total", flow="a") == 0
    proxy.ctl("set", "limit", "farm/a", "none")
    assert one.ask("GET", "/a").status == 200
    proxy.stop()
    with open(log) as file:
        ends = [re.search(r"(at-limit|done)", line).group() for line in file]
    assert ends == ["done", "at-limit", "done", "done"]


def test_over_the_limit_is_jukebox_for_nfs(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(nfs_config([server.address], port, {
        "scheduler": {"algorithm": "mclock", "at-limit": "refuse"},
        "cost": {"by": "table", "table": {"default": 1000}},
        "flows": [{"name": "a", "limit": "1/s", "burst": 0, "match": {"uid": 7}}]}))
    one = rpc_client(port)

    def getattr_status(xid):
        one.send(rpc.call(xid, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(b"h"), rpc.auth_sys(7)))
        return one.reply().results.u32()

    assert getattr_status(1) == 0
    assert getattr_status(2) == 10008
    assert proxy.metric("spillway_flow_at_limit_total", flow="a") == 1


def test_a_limit_is_kept_and_its_flow_is_not_starved(spillway, closing):
    """The limited flow never gets more than its rate and its burst allow, counted over the
    proxy's own uptime; the other one gets what is left."""
    backend = closing(Service(4, "1ms"))
    port = process.free_port()
    proxy = spillway(http_config([backend.http], port, {
        "scheduler": "mclock",
        "flows": [{"name": "a", "limit": "200/s", "match": {"header": {"X-Flow": "a"}}},
                  {"name": "b"}]}, None, {"depth": 4}))
    load = closing(Load([
        f"name={flow},proto=http,target=127.0.0.1:{port},concurrency=16,header=X-Flow:{flow}"
        for flow in "ab"], "60s"))
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n >= 400, flow="a")
    metrics = proxy.metrics()
    # The page is as old as the answer: the status comes after it, so its uptime is not less.
    uptime_s = proxy.show("status")["uptime_seconds"]
    assert metrics("spillway_flow_requests_total", flow="a") <= 200 * uptime_s + 3
    assert metrics("spillway_flow_requests_total", flow="b") > 0
    for name, (good, bad) in outcomes(load.finish()).items():
        assert good > 0 and bad == 0, name


def test_settings_are_shown_as_they_are_set(spillway, closing):
    backend = closing(Service())
    proxy = spillway(http_config([backend.http], process.free_port(), {
        "scheduler": {"algorithm": "mclock", "capacity": "900/s"}, "flows": FLOWS}))

    def flow():
        return proxy.show("flows")[0]

    def pool():
        return proxy.show("pools")[0]

    assert (flow()["target_seconds"], flow()["reservation_per_second"],
            flow()["limit_per_second"], flow()["burst"]) == (0.02, 20, 20000, 200)
    proxy.ctl("set", "limit", "farm/a", "500/s")
    assert (flow()["limit_per_second"], flow()["burst"]) == (500, 5)
    proxy.ctl("set", "burst", "farm/a", "9")
    proxy.ctl("set", "reservation", "farm/a", "none")
    proxy.ctl("set", "queue-limit", "farm/a", "33")
    assert (flow()["burst"], flow()["reservation_per_second"], flow()["queue_limit"]) == (9, 0, 33)
    said = proxy.ctl("set", "target", "farm/a", "7ms").stderr
    assert "no effect" in said and "edf" in said
    assert flow()["target_seconds"] == 0.007
    proxy.ctl("set", "slack", "farm", "3")
    proxy.ctl("set", "ageing", "farm", "250us")
    proxy.ctl("set", "at-limit", "farm", "refuse")
    proxy.ctl("set", "capacity", "farm", "unknown")
    assert (pool()["slack"], pool()["ageing_seconds"], pool()["at_limit_policy"],
            pool()["capacity_per_second"]) == (3, 0.00025, "refuse", 0)
    assert "at-limit=refuse" in proxy.ctl("show", "pools").stdout
    assert "500/s" in proxy.ctl("show", "flows").stdout
    assert proxy.reload()
    assert (flow()["limit_per_second"], flow()["queue_limit"]) == (20000, 1024)
    assert (pool()["slack"], pool()["at_limit_policy"], pool()["capacity_per_second"]) == (
        0, "wait", 900)


# ------------------------------------------------ response targets


def target_pool(target):
    return {
        "scheduler": {"algorithm": "sfqd", "feedback": {"period": "1s"}},
        "flows": [
            {"name": "a", "weight": 16, "match": {"header": {"X-Flow": "a"}},
             "response-target": target, "weight-range": "4..400"},
            {"name": "b", "weight": 16}],
    }


def load_for_targets(port):
    """Four slots of 10 ms do 400/s: half of it is 40 ms for each of a's 8 clients."""
    return Load([f"name=a,proto=http,target=127.0.0.1:{port},concurrency=8,header=X-Flow:a",
                 f"name=b,proto=http,target=127.0.0.1:{port},concurrency=60"], "300s")


def test_a_weight_is_raised_until_its_target_is_met(spillway, closing):
    backend = closing(Service(4, "10ms"))
    port = process.free_port()
    proxy = spillway(http_config([backend.http], port, target_pool("30ms"), None, {"depth": 4}))
    closing(load_for_targets(port))

    def flow():
        return proxy.show("flows")[0]

    process.wait_until(lambda: flow()["feedback"] == "raising", "the loop acts")
    process.wait_until(lambda: flow()["feedback"] == "met", "the target is met", 120, every_s=0.2)
    assert 16 < flow()["weight"] <= 400 and flow()["infeasible"] == 0
    assert proxy.show("flows")[1]["weight"] == 16
    weight = flow()["weight"]
    assert proxy.reload() and flow()["weight"] >= weight // 2


def test_a_target_below_the_service_time_is_infeasible(spillway, closing):
    backend = closing(Service(4, "10ms"))
    port = process.free_port()
    proxy = spillway(http_config([backend.http], port, target_pool("3ms"), None, {"depth": 4}))
    closing(load_for_targets(port))
    proxy.wait_log("flow a: infeasible")
    assert proxy.metric("spillway_flow_infeasible", flow="a") == 1
    assert proxy.show("flows")[0]["feedback"] == "infeasible"
    assert "infeasible" in proxy.ctl("show", "flows").stdout
    proxy.ctl("set", "response-target", "farm/a", "none")
    assert proxy.metric("spillway_flow_infeasible", flow="a") == 0
    assert proxy.show("flows")[0]["weight"] == 16


# ------------------------------------------------ a slow server among fast ones


@pytest.mark.parametrize("balance", ["round-robin", "least-outstanding"])
def test_a_slow_server_does_not_hold_the_others_up(spillway, closing, balance):
    """Four servers, one a hundred times slower, and beside them the same three fast ones in a pool
    of their own. Both see the same machine at the same time: for as long as the slow server takes
    for its requests, its three neighbours do at least 95 % of what the free three do."""
    assert share_of_free_throughput(spillway, closing, balance, {}) >= 0.95


def test_a_slow_server_with_the_whole_depth_does(spillway, closing):
    """What the default prevents, so that the test above can fail."""
    assert share_of_free_throughput(spillway, closing, "round-robin", {"depth": 8}) < 0.7


def share_of_free_throughput(spillway, closing, balance, server):
    fast = [Service(2, "10ms") for _ in range(6)]
    slow = Service(8, "1s")
    for service in fast + [slow]:
        closing(service)
    ports = process.free_port(), process.free_port()

    def servers(services):
        return [dict({"name": f"s{n}", "address": s.http}, **server)
                for n, s in enumerate(services)]

    config = http_config(servers(fast[:3] + [slow]), ports[0], {"depth": 8, "balance": balance})
    free = http_config(servers(fast[3:]), ports[1], {"depth": 6, "balance": balance})
    config["listeners"] += [dict(free["listeners"][0], name="other", pool="free")]
    config["pools"] += [dict(free["pools"][0], name="free")]
    proxy = spillway(config)
    closing(Load([f"name=f{port},proto=http,target=127.0.0.1:{port},concurrency=24"
                  for port in ports], "120s"))

    def done():
        metrics = proxy.metrics()
        return {pool: sum(metrics("spillway_server_requests_total", pool=pool, server=f"s{n}")
                          for n in range(3))
                for pool in ("farm", "free")}

    def wait_slow(count):
        proxy.wait_metric("spillway_server_requests_total", lambda n: n >= count, pool="farm",
                          server="s3")

    wait_slow(2)
    before = done()
    wait_slow(8)
    after = done()
    return (after["farm"] - before["farm"]) / (after["free"] - before["free"])
