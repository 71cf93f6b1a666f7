# SPDX-License-Identifier: Apache-2.0
"""Four workers, one gate: mixed load, reloads, control and draining at once. Made for
ThreadSanitizer, short everywhere."""
import random
import threading

from lab import http, process
from lab.load import Load, Service
from lab.spillway import Metrics

FLOWS = [
    {"name": "a", "weight": 2, "match": {"header": {"X-Flow": "a"}}},
    {"name": "b", "weight": 1, "by": "client-address"},
]
NFS_FLOWS = [
    {"name": "a", "weight": 2, "match": {"uid": 1001}},
    {"name": "keyed", "weight": 1, "by": "uid"},
]


def configuration(backends, web, nas, weight=2, depth=4):
    flows, nfs_flows = [dict(f) for f in FLOWS], [dict(f) for f in NFS_FLOWS]
    flows[0]["weight"] = nfs_flows[0]["weight"] = weight
    return {
        "workers": 4,
        "listeners": [
            {"name": "web", "bind": [f"127.0.0.1:{web}"], "protocol": "http", "pool": "farm"},
            {"name": "nas", "bind": [f"127.0.0.1:{nas}"], "protocol": "nfs", "pool": "array"},
        ],
        "pools": [
            {
                "name": "farm",
                "servers": [
                    {"name": f"s{n}", "address": b.http, "depth": depth}
                    for n, b in enumerate(backends)
                ],
                "balance": "least-outstanding",
                "flows": flows,
            },
            {
                "name": "array",
                "servers": [{"name": "n0", "address": backends[0].nfs, "depth": depth}],
                "flows": nfs_flows,
            },
        ],
    }


def load(web, nas, duration):
    return Load(
        [
            f"name=a,proto=http,target=127.0.0.1:{web},concurrency=24,header=X-Flow:a",
            f"name=b,proto=http,target=127.0.0.1:{web},concurrency=24,method=PUT,bytes=3000",
            f"name=burst,proto=http,target=127.0.0.1:{web},rate=300/s,concurrency=64",
            f"name=na,proto=nfs,target=127.0.0.1:{nas},concurrency=24,op=read,bytes=65536,uid=1001",
            f"name=nb,proto=nfs,target=127.0.0.1:{nas},concurrency=24,op=write,bytes=8192,uid=1002",
        ],
        duration,
    )


def test_nothing_is_lost_while_everything_changes(spillway, closing):
    backends = [closing(Service(8, "1ms", "exponential")) for _ in range(2)]
    web, nas = process.free_port(), process.free_port()
    proxy = spillway(configuration(backends, web, nas))
    running = closing(load(web, nas, "8s"))
    process.wait_until(
        lambda: proxy.metric("spillway_pool_requests_total", pool="array") > 100, "load runs"
    )
    chance = random.Random(4)
    algorithms = """fifo sfq sfqd min-sfqd fsfq rw hybrid virtual-clock wfq edf scf leaky-bucket
                    mclock 2dfq""".split()
    turn = 0
    while running.process.running() or turn < 3:
        turn += 1
        proxy.ctl("set", "algorithm", chance.choice(["farm", "array"]), chance.choice(algorithms))
        proxy.ctl("set", "weight", "farm/a", str(chance.randint(1, 9)))
        proxy.ctl("set", "limit", "farm/a", chance.choice(["none", "5000/s", "100000/s"]))
        proxy.ctl("set", "target", "array/a", chance.choice(["none", "5ms"]))
        proxy.ctl("set", "depth", "farm/s0", str(chance.randint(1, 9)))
        proxy.ctl("drain", "farm/s1")
        proxy.show("flows"), proxy.show("servers"), proxy.show("status")
        proxy.ctl("ready", "farm/s1")
        assert proxy.reload(
            configuration(backends, web, nas, chance.randint(1, 9), chance.randint(2, 9))
        )
    figures = running.result()
    for name, flow in figures.items():
        bad = {
            kind: n
            for kind, n in flow["outcomes"].items()
            if kind not in ("ok", "unfinished") and n
        }
        assert not bad, f"{name}: {bad}"
        assert flow["outcomes"]["ok"] > 50, name
    metrics: Metrics = proxy.metrics()
    for pool in ("farm", "array"):
        assert (
            metrics("spillway_pool_outstanding", pool=pool)
            == metrics("spillway_pool_queue_length", pool=pool)
            == 0
        )
        assert metrics("spillway_pool_errors_total", pool=pool) == 0
    served = sum(figures[flow]["outcomes"]["ok"] for flow in ("a", "b", "burst"))
    assert metrics("spillway_pool_requests_total", pool="farm") >= served


def test_clients_that_vanish_leave_nothing_behind(spillway, closing):
    backends = [closing(Service(2, "5ms")) for _ in range(2)]
    web, nas = process.free_port(), process.free_port()
    proxy = spillway(configuration(backends, web, nas, depth=1))

    def vandal(seed):
        chance = random.Random(seed)
        for _ in range(40):
            try:
                with http.Client(web) as one:
                    one.send(
                        b"".join(http.request(target=f"/{n}") for n in range(chance.randint(1, 5)))
                    )
                    if chance.random() < 0.5:
                        one.reply()
                    if chance.random() < 0.5:
                        one.reset()
            except (OSError, http.Ended):
                pass

    vandals = [threading.Thread(target=vandal, args=(seed,)) for seed in range(6)]
    for thread in vandals:
        thread.start()
    for thread in vandals:
        thread.join()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="web")
    with http.Client(web) as one:
        assert one.ask().status == 200


def test_draining_under_load_answers_what_was_taken(spillway, closing):
    backends = [closing(Service(8, "2ms")) for _ in range(2)]
    web, nas = process.free_port(), process.free_port()
    proxy = spillway(configuration(backends, web, nas))
    running = closing(load(web, nas, "30s"))
    process.wait_until(
        lambda: proxy.metric("spillway_pool_requests_total", pool="farm") > 500, "load runs"
    )
    proxy.stop()
    running.process.send_signal(2)
    for name, flow in running.result().items():
        assert flow["outcomes"]["ok"] > 0, name
