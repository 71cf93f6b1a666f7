# SPDX-License-Identifier: Apache-2.0
"""One flow isolated from another on the real road, HTTP and NFS: what is asserted is who was served
and how often, never when, so a busy machine changes nothing."""
import json
import subprocess

import pytest

from lab import process, rpc
from lab.load import Load, Service
from lab.spillway import http_config, nfs_config

DEPTH = 16
SLOTS = 4
SERVICE = "2ms"
UIDS = {"f": 1001, "g": 1002}
PROTOCOLS = ["http", "nfs"]


def flows(match, weights):
    """f with its match and g, which takes the rest: without it there would be a third flow, which
    has a weight of its own."""
    return [{"name": "f", "weight": weights[0], "match": match},
            {"name": "g", "weight": weights[1]}]


class Road:
    """A service that is the bottleneck, and the proxy before it with flows f and g."""

    def __init__(self, spillway, closing, protocol, algorithm, weights):
        self.closing, self.protocol = closing, protocol
        self.port = process.free_port()
        self.service = closing(Service(SLOTS, SERVICE, "exponential"))
        match = {"header": {"X-Flow": "f"}} if protocol == "http" else {"uid": UIDS["f"]}
        pool = {"scheduler": {"algorithm": algorithm}, "flows": flows(match, weights)}
        config, address = ((http_config, self.service.http) if protocol == "http"
                           else (nfs_config, self.service.nfs))
        self.proxy = spillway(config([address], self.port, pool, None, {"depth": DEPTH}))
        self.proxy.wait_log("ready")

    def load(self, **clients):
        """Starts a load with so many clients of each flow, each with one request at a time."""
        who = {name: f"header=X-Flow:{name}" if self.protocol == "http"
               else f"op=read,bytes=4096,uid={uid}" for name, uid in UIDS.items()}
        return self.closing(Load([f"name={name},proto={self.protocol},target=127.0.0.1:{self.port},"
                                  f"{who[name]},concurrency={count}"
                                  for name, count in clients.items()], duration="600s"))

    def counts(self, metric="requests_total"):
        metrics = self.proxy.metrics()
        return [metrics(f"spillway_flow_{metric}", flow=name) for name in "fg"]

    def served(self, requests):
        """How many of the next so many completions, or a few more, were f's and g's."""
        first = self.counts()

        def enough():
            done = [now - then for now, then in zip(self.counts(), first)]
            return done if sum(done) >= requests else None

        return process.wait_until(enough, f"{requests} completions", 2 * process.PATIENCE_S)

    def wait_queued(self, names):
        def all_wait():
            queued = dict(zip("fg", self.counts("queue_length")))
            return all(queued[name] >= 5 for name in names)

        process.wait_until(all_wait, f"{names} are backlogged")


@pytest.fixture
def road(spillway, closing):
    return lambda *arguments: Road(spillway, closing, *arguments)


def simulated_ratio(algorithm, weights, clients):
    """Completions of f by those of g, of the same closed loops at the simulated array."""
    summary = process.scratch() + "/sim.json"
    command = [process.program("spillsim"), "array", "--algorithm", algorithm, "--depth",
               str(DEPTH), "--disks", str(SLOTS), "--service", SERVICE, "--spread", "shortest",
               "--warmup", "1s", "--duration", "20s", "--json", summary]
    for name, weight, count in zip("fg", weights, clients):
        command += ["--flow", f"name={name},weight={weight},concurrency={count}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=process.PATIENCE_S)
    with open(summary) as file:
        f, g = json.load(file)["flows"]
    return f["completed"] / g["completed"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("algorithm", ["fsfq", "rw"])
@pytest.mark.parametrize("weights", [(2, 1), (8, 1)], ids="{0[0]}:{0[1]}".format)
def test_a_crowd_gets_its_weight_and_no_more(road, protocol, algorithm, weights):
    """Both flows backlogged, the one with four times the clients is the lighter one."""
    clients = (128, 512)  # so that a pause of the load leaves requests waiting
    here = road(protocol, algorithm, weights)
    here.load(f=clients[0], g=clients[1])
    here.wait_queued("fg")
    f, g = here.served(4000)
    assert f / g == pytest.approx(weights[0] / weights[1], rel=0.03)
    assert f / g == pytest.approx(simulated_ratio(algorithm, weights, clients), rel=0.03)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("algorithm, rests", [("fsfq", DEPTH), ("rw", 11)])
def test_what_a_flow_leaves_goes_to_the_other_and_back(road, protocol, algorithm, rests):
    """f all the time, g ON and OFF; while g is off f holds every slot, under rw its window of
    10.67."""
    here = road(protocol, algorithm, (2, 1))
    here.load(f=192)
    here.wait_queued("f")
    assert here.served(1000)[1] == 0
    for _ in range(2):
        burst = here.load(g=192)
        here.wait_queued("fg")
        f, g = here.served(2000)
        assert f / g == pytest.approx(2, rel=0.03)
        burst.finish()
        process.wait_until(lambda: here.counts("outstanding")[1] == 0, "g is off")
        assert here.served(1000)[1] == 0
        held = [here.counts("outstanding")[0] for _ in range(100)]
        assert max(held) == rests, held


class Answering:
    """An RPC server that answers when it is told to, oldest call first."""

    def __init__(self, rpc_server):
        self.came = []
        self.answered = 0
        self.server = rpc_server(lambda call, connection: self.came.append((call, connection)))

    def wait(self, count):
        process.wait_until(lambda: len(self.came) >= count, f"{count} calls at the server")

    def answer(self):
        self.wait(self.answered + 1)
        call, connection = self.came[self.answered]
        connection.send(rpc.canned(call))
        self.answered += 1

    def answer_all(self, count):
        """Until so many have come in all. The call that an answer lets through is awaited before
        the next answer, so that no two calls race to the server on two connections."""
        while len(self.came) < count:
            came = len(self.came)
            self.answer()
            self.wait(came + 1)
        while self.answered < count:
            self.answer()

    def places(self, name):
        return [n for n, (call, _) in enumerate(self.came) if call.uid() == UIDS[name]]


# Which of f's three calls come where. Before them f had one (0) and g sent forty: sixteen are at
# the server (six under rw, whose window for g is 16/3). v is the start tag of the last of these, so
# under sfqd f's three get v, v + 1/2 and v + 1, and g's next of v + 1 is the older one. fsfq gives
# all three v.
PLACES = {
    "fifo": [0, 41, 42, 43],
    "sfqd": [0, 17, 18, 20],
    "fsfq": [0, 17, 18, 19],
    "rw": [0, 7, 8, 9],
}


@pytest.mark.parametrize("algorithm", PLACES)
def test_a_flow_that_wakes_up_passes_the_queue_of_the_other(spillway, rpc_server, rpc_client,
                                                            algorithm):
    server, port = Answering(rpc_server), process.free_port()
    pool = {"flows": flows({"uid": UIDS["f"]}, (2, 1)), "scheduler": {"algorithm": algorithm}}
    proxy = spillway(nfs_config([server.server.address], port, pool, None, {"depth": DEPTH}))
    proxy.wait_log("ready")
    clients = {name: rpc_client(port) for name in "fg"}

    def send(name, count):
        for xid in range(1, count + 1):
            clients[name].send(rpc.call(xid, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(b"h"),
                                        rpc.auth_sys(UIDS[name])))

    def wait_queued(queued):
        proxy.wait_metric("spillway_pool_queue_length", queued, pool="farm")

    send("f", 1)
    server.answer()
    clients["f"].reply()
    at_once = {"g": 6, "f": 3} if algorithm == "rw" else {"g": 16, "f": 0}
    send("g", 40)
    server.wait(1 + at_once["g"])
    wait_queued(40 - at_once["g"])
    send("f", 3)
    server.wait(1 + sum(at_once.values()))
    wait_queued(43 - sum(at_once.values()))
    assert len(server.came) == 1 + sum(at_once.values())
    if algorithm != "rw":  # there f's window keeps g's calls waiting when one of f's is answered
        server.answer_all(44)
    assert server.places("f") == PLACES[algorithm]
