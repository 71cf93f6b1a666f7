# SPDX-License-Identifier: Apache-2.0
"""Admission at the HTTP side: what the refused are told, what happens to the marked, and that
nothing is lost or done twice, whatever is switched under load."""
import collections
import itertools
import json
import math
import threading
import time
import urllib.request

import pytest

from lab import process
from lab.http import Origin, answer, request
from lab.load import Load, Service
from lab.spillway import http_config

POLICIES = ["duk", "codel", "pie", "duk-literal", "tail", "none"]

# So many make an interval of measuring. At a depth of 1 they take 1.4 s: longer than the longest
# pause, which is then what a mark is worth, and slow enough for a queue to be worth some seconds.
SLOW_REQUESTS, SLOW_S = 20, 0.07


def stats(service):
    """What spillorigin counted."""
    with urllib.request.urlopen(f"http://{service.http}/_origin/stats") as reply:
        return json.load(reply)["http"]


def settle(proxy):
    """Until the gate has seen the end of everything."""
    for name in ("queue_length", "outstanding"):
        proxy.wait_metric(f"spillway_pool_{name}", 0, pool="farm")


def show_capacity(proxy, client):
    """Requests that take their time, one after another, for the gate to measure."""
    crowd = [client() for _ in range(4)]
    for one in crowd:
        one.send(request(target="/slow") * (SLOW_REQUESTS // len(crowd)))
    for one in crowd:
        for _ in range(SLOW_REQUESTS // len(crowd)):
            assert one.reply().status == 200
        one.close()
    settle(proxy)
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")


def check_sums(proxy, service, flows):
    """Every request was answered, those that were served once at the origin, and the counts of the
    load, the gate and the origin are the same."""
    settle(proxy)
    metrics = proxy.metrics()

    def count(name):
        return metrics(f"spillway_pool_{name}_total", pool="farm")

    served = sum(flow["outcomes"]["ok"] for flow in flows)
    for flow in flows:
        wrong = {name: n for name, n in flow["outcomes"].items() if n and name != "ok"}
        assert set(wrong) <= {"refused"} and flow["unfinished"] == 0, wrong
    assert served == stats(service)["completed"] == count("requests")
    refused = count("admission_refused")
    assert count("offered") == served + refused + count("refused")
    assert count("errors") == count("cancelled") == count("queue_timeouts") == 0
    return served, refused


# ---------------------------------------------------------------------- what the refused are told


def with_tail(limit):
    return {"admission": {"algorithm": "tail", "limit": limit}}


def with_queue_limit(limit):
    return {"queue": {"limit": limit}}


@pytest.mark.parametrize("pool", [with_tail, with_queue_limit])
def test_retry_after_is_the_queue_over_the_capacity(spillway, origin, client, pool):
    """The capacity is measured, then the server stands still and the queue grows."""
    release = threading.Event()

    def handler(exchange):
        if exchange.request.target == b"/slow":
            time.sleep(SLOW_S)
        else:
            release.wait(process.PATIENCE_S)
        return answer()

    server = origin(handler)
    port = process.free_port()

    def config(limit):
        return http_config([server.address], port, pool(limit), None, {"depth": 1})

    proxy = spillway(config(60))
    show_capacity(proxy, lambda: client(port))
    capacity = proxy.metric("spillway_pool_admission_capacity_per_second", pool="farm")
    assert 0 < capacity < 1 / SLOW_S
    waiting = []

    def fill(count):
        new = [client(port) for _ in range(count)]
        waiting.extend(new)
        for one in new:
            one.send(request())
        proxy.wait_metric("spillway_pool_queue_length", len(waiting) - 1, pool="farm")

    fill(61)
    late = client(port)
    refused = late.ask()
    assert refused.status == 503 and refused.get("connection") is None
    assert refused.get("retry-after") == str(math.ceil(60 / capacity)).encode()
    # A longer queue is a later time, but nobody is sent away for hours; the connection goes on.
    assert proxy.reload(config(900))
    fill(840)
    assert 900 / capacity > 60
    assert late.ask().get("retry-after") == b"60"
    release.set()
    for one in waiting:
        assert one.reply().status == 200
    assert len(server.requests) == SLOW_REQUESTS + len(waiting)


def test_retry_after_is_a_second_when_nothing_is_known(spillway, origin, client):
    release = threading.Event()

    def handler(exchange):
        release.wait(process.PATIENCE_S)
        return answer()

    server = origin(handler)
    port = process.free_port()
    pool = {"admission": {"algorithm": "tail", "limit": 1}}
    proxy = spillway(http_config([server.address], port, pool, None, {"depth": 1}))
    held = [client(port) for _ in range(2)]
    for one in held:
        one.send(request())
    proxy.wait_metric("spillway_pool_queue_length", 1, pool="farm")
    assert client(port).ask().get("retry-after") == b"1"
    release.set()
    assert [one.reply().status for one in held] == [200, 200]


# ---------------------------------------------------------------------- the marked


class Marked:
    """A pool of which one request more than the queue's limit of 1 is marked, for the longest time
    there is; the server answers a request when it is let."""

    def __init__(self, spillway, origin, client, listener=None):
        self.turns = threading.Semaphore(0)
        self.free = False
        self.client_of = client
        self.server = origin(self.handle)
        self.port = process.free_port()
        pool = {"admission": {"algorithm": "none", "limit": 1, "action": "mark"}}
        self.proxy = spillway(
            http_config([self.server.address], self.port, pool, listener, {"depth": 1}))
        show_capacity(self.proxy, self.client)
        self.proxy.ctl("set", "admission", "farm", "tail")
        self.held = [self.client() for _ in range(2)]

    def client(self):
        return self.client_of(self.port)

    def handle(self, exchange):
        target = exchange.request.target
        if target == b"/slow":
            time.sleep(SLOW_S)
        elif not self.free:
            self.turns.acquire(timeout=process.PATIENCE_S)
        if exchange.request.all("upgrade"):
            exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                          b"Upgrade: echo\r\n\r\n")
            while data := exchange.sock.recv(4096):
                exchange.send(data)
            return Origin.CLOSE
        return answer(target, fields=[("Spillway-Mark", "77")])

    def fill(self):
        """One at the server, one in the queue."""
        for number, one in enumerate(self.held):
            one.send(request(target=f"/held{number}"))
            self.server.wait_requests(SLOW_REQUESTS + 1)
            self.proxy.wait_metric("spillway_pool_offered_total", SLOW_REQUESTS + number + 1,
                                   pool="farm")

    def mark(self, sent, count=1):
        """A client that sends this with the queue full, hence is marked."""
        one = self.client()
        one.send(sent)
        self.proxy.wait_metric("spillway_pool_marked_total", count, pool="farm")
        return one

    def let(self):
        """Everything that is waiting, and all that comes."""
        self.free = True
        self.turns.release(1000)
        for number, one in enumerate(self.held):
            assert one.reply().body == b"/held%d" % number

    def offered(self):
        """Requests begun, but for those that showed the capacity."""
        return self.proxy.metric("spillway_pool_offered_total", pool="farm") - SLOW_REQUESTS

    def targets(self):
        return [message.target for message in self.server.requests[SLOW_REQUESTS:]]


@pytest.fixture
def marked(spillway, origin, client):
    return lambda **options: Marked(spillway, origin, client, **options)


def requests(*targets):
    return b"".join(request(target=target) for target in targets)


def test_a_marked_client_is_left_alone_and_loses_nothing(marked):
    """What it has sent already is not begun, others are served, then everything is answered."""
    here = marked()
    here.fill()
    one = here.mark(requests("/m1", "/m2", "/m3"))
    here.let()
    reply = one.reply()
    assert (reply.body, reply.get("spillway-mark")) == (b"/m1", b"1000")
    assert here.offered() == 3
    other = here.client()
    reply = other.ask(target="/other")
    assert (reply.body, reply.get("spillway-mark")) == (b"/other", None)
    assert here.offered() == 4
    for target in (b"/m2", b"/m3"):
        reply = one.reply()
        assert (reply.body, reply.get("spillway-mark")) == (target, None)
    assert here.targets() == [b"/held0", b"/held1", b"/m1", b"/other", b"/m2", b"/m3"]
    assert here.proxy.metric("spillway_pool_admission_refused_total", pool="farm") == 0


def test_a_request_sent_in_the_pause_waits_for_its_end(marked):
    here = marked()
    here.fill()
    one = here.mark(requests("/m1"))
    here.let()
    assert one.reply().get("spillway-mark") == b"1000"
    one.send(requests("/m2"))
    other = here.client()
    assert other.ask(target="/other").status == 200
    assert one.reply().body == b"/m2"
    assert here.targets()[-2:] == [b"/other", b"/m2"]


def test_a_body_under_way_is_not_stalled(marked):
    """More than may stand in the input, and than the kernel holds: it flows in the pause."""
    here = marked()
    here.fill()
    body = bytes(range(256)) * 16384
    one = here.client()
    sender = threading.Thread(
        target=one.send, args=(request("POST", "/m1", body=body) + requests("/m2"),))
    sender.start()
    here.proxy.wait_metric("spillway_pool_marked_total", 1, pool="farm")
    here.let()
    assert one.reply().get("spillway-mark") == b"1000"
    assert here.server.requests[-1].body == body
    assert here.offered() == 3
    sender.join(process.PATIENCE_S)
    assert one.reply().body == b"/m2"


def test_a_half_closed_client_gets_its_answers(marked):
    here = marked()
    here.fill()
    one = here.mark(requests("/m1", "/m2"))
    here.let()
    assert one.reply().body == b"/m1"
    one.finish_sending()
    assert one.reply().body == b"/m2"
    assert one.closed()


def test_a_client_that_had_ended_is_not_paused(marked):
    """Nothing is left to slow down: the connection ends with the reply."""
    here = marked()
    here.fill()
    one = here.mark(requests("/m1"))
    one.finish_sending()
    here.let()
    assert one.reply().body == b"/m1"
    assert one.closed()


def test_a_client_that_goes_away_in_the_pause_is_forgotten(marked):
    here = marked()
    before = here.proxy.metric("spillway_listener_connections_open", listener="front")
    here.fill()
    here.mark(requests("/m1", "/m2")).reset()
    two = here.mark(requests("/m3", "/m4"), 2)
    here.let()
    assert two.reply().body == b"/m3"
    two.reset()
    here.proxy.wait_metric("spillway_listener_connections_open", before, listener="front")
    settle(here.proxy)


def test_abort_on_close_takes_a_marked_request_back(marked):
    here = marked(listener={"abort-on-close": True})
    here.fill()
    one = here.mark(requests("/m1", "/m2"))
    one.finish_sending()
    here.proxy.wait_metric("spillway_pool_cancelled_total", 1, pool="farm")
    assert one.closed()
    here.let()
    settle(here.proxy)
    assert here.targets() == [b"/held0", b"/held1"]


def test_draining_answers_what_a_paused_client_has_sent(marked):
    here = marked()
    here.fill()
    one = here.mark(requests("/m1", "/m2"))
    idle = here.mark(requests("/i1"), 2)
    here.let()
    assert one.reply().body == b"/m1"
    assert idle.reply().body == b"/i1"
    here.proxy.stop()
    reply = one.reply()
    assert (reply.body, reply.get("connection")) == (b"/m2", b"close")
    assert one.closed() and idle.closed()


def test_a_tunnel_is_not_slowed(marked):
    """It echoes while another client that was marked later is still left alone."""
    here = marked()
    here.fill()
    upgrade = [("Connection", "upgrade"), ("Upgrade", "echo")]
    tunnel = here.mark(request(target="/t", fields=upgrade))
    one = here.mark(requests("/m1", "/m2"), 2)
    here.let()
    assert tunnel.reply().status == 101
    assert one.reply().body == b"/m1"
    for _ in range(10):
        tunnel.send(b"ping")
        assert tunnel.stream.exactly(4) == b"ping"
    assert here.offered() == 4
    assert one.reply().body == b"/m2"


def test_closing_clients_are_told_in_the_reply(marked):
    here = marked()
    here.fill()
    one = here.mark(request(target="/m1", fields=[("Connection", "close")]))
    here.let()
    reply = one.reply()
    assert (reply.get("spillway-mark"), reply.get("connection")) == (b"1000", b"close")
    assert one.closed()


def test_nginx_does_every_pipelined_request_once(spillway, nginx, client):
    """Overload by clients that send all they have at once; the replies come in order."""
    port = process.free_port()
    pool = {"admission": {"algorithm": "tail", "limit": 2, "action": "mark"}}
    proxy = spillway(http_config([nginx.address], port, pool, None, {"depth": 1}))
    crowd = [client(port) for _ in range(24)]
    hosts = [[f"c{c}-r{r}.example" for r in range(40)] for c in range(len(crowd))]
    for one, names in zip(crowd, hosts):
        one.send(b"".join(request(target="/who", host=name) for name in names))
    marks = 0
    for one, names in zip(crowd, hosts):
        for name in names:
            reply = one.reply()
            assert reply.status == 200 and reply.body.split()[0].decode() == name
            marks += len(reply.all("spillway-mark"))
    assert marks == proxy.metric("spillway_pool_marked_total", pool="farm") > 0
    done = collections.Counter(line[4] for line in nginx.access())
    assert all(done[name] == 1 for names in hosts for name in names)


# ---------------------------------------------------------------------- under load


@pytest.mark.parametrize("policy", ["duk", "pie"])
def test_who_tries_again_after_50_ms_is_served_in_the_end(spillway, closing, policy):
    """Twice the capacity, closed loop; at its end every request has been served."""
    service = closing(Service(4, "2ms", "exponential"))
    port = process.free_port()
    proxy = spillway(http_config([service.http], port, {"admission": policy}, None, {"depth": 16}))
    load = closing(Load(
        [f"target=127.0.0.1:{port},concurrency=256,retry=50ms"], "3s", ["--drain", "60s"]))
    flow = load.result()["flow1"]
    served, refused = check_sums(proxy, service, [flow])
    assert served == flow["offered"] and flow["outcomes"]["refused"] == 0
    assert refused == flow["retried"] > 0


def test_policies_and_actions_switch_under_load(spillway, closing):
    service = closing(Service(4, "1ms", "exponential"))
    port = process.free_port()
    proxy = spillway(http_config([service.http], port, {"admission": "duk"}, None, {"depth": 8},
                                 workers=2))
    flows = [f"name=closed,target=127.0.0.1:{port},concurrency=96,retry=20ms",
             f"name=open,target=127.0.0.1:{port},rate=3000,concurrency=256"]
    load = closing(Load(flows, "8s", ["--drain", "60s"]))
    switched = 0
    for policy, action in itertools.cycle(itertools.product(POLICIES, ("mark", "refuse"))):
        for change in ({"admission": policy}, {"admission-action": action}):
            answered = proxy.api("POST", "/v1/pools/farm", json.dumps(change))
            assert answered[0] == 200, answered
        switched += 1
        before = proxy.metric("spillway_pool_requests_total", pool="farm")
        process.wait_until(
            lambda: proxy.metric("spillway_pool_requests_total", pool="farm") >= before + 100
            or not load.process.running(), "100 more served, or the end of the load")
        if not load.process.running():
            break
    served, refused = check_sums(proxy, service, list(load.result().values()))
    assert switched > 2 * len(POLICIES) and refused > 0
    assert proxy.metric("spillway_pool_marked_total", pool="farm") > 0


@pytest.mark.parametrize("action", ["refuse", "mark"])
def test_a_flow_within_its_share_loses_nothing(spillway, closing, action):
    """One flow asks for ten times the capacity (refused) or has 50 clients for each slot (marked),
    the other asks for a third of its half."""
    service = closing(Service(4, "10ms", "exponential"))
    port = process.free_port()
    pool = {"admission": {"algorithm": "duk", "action": action},
            "scheduler": {"algorithm": "sfqd"},
            "flows": [{"name": "quiet", "match": {"header": {"X-Flow": "quiet"}}},
                      {"name": "noisy"}]}
    proxy = spillway(http_config([service.http], port, pool, None, {"depth": 16}))
    load = closing(Load([
        f"name=quiet,target=127.0.0.1:{port},rate=66,header=X-Flow:quiet",
        f"name=noisy,target=127.0.0.1:{port},concurrency=200,pause=50ms",
    ], "4s", ["--drain", "60s"]))
    result = load.result()
    served, refused = check_sums(proxy, service, list(result.values()))
    metrics = proxy.metrics()

    def count(name, flow):
        return metrics(f"spillway_flow_{name}_total", pool="farm", flow=flow)

    put_out = "admission_refused" if action == "refuse" else "marked"
    assert count(put_out, "noisy") > 100
    if action == "refuse":
        assert count("offered", "noisy") > 5 * served
    assert count(put_out, "quiet") == 0
    assert result["quiet"]["outcomes"]["ok"] == count("offered", "quiet") > 0
