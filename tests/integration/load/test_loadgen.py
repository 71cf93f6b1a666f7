# SPDX-License-Identifier: Apache-2.0
"""spillload and spillorigin against each other: both sides count the same."""
import http.client
import json
import os
import signal

import pytest

from lab import process


class SpillOrigin:
    """A running spillorigin on ports of its own choice."""

    def __init__(self, *options):
        self.process = process.Process("spillorigin", [
            process.program("spillorigin"), "--http", "127.0.0.1:0", "--nfs", "127.0.0.1:0", *options])
        self.process.wait_log("ready\n")
        line = self.process.log().splitlines()[0]
        assert line.startswith("listening ")
        self.address = dict(word.split("=") for word in line.split()[1:])

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address["http"], timeout=process.PATIENCE_S)
        connection.request(method, path, body)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, data

    def stats(self, protocol):
        status, text = self.request("GET", "/_origin/stats")
        assert status == 200
        return json.loads(text)[protocol]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, self.process.log()
        assert "Sanitizer" not in self.process.log(), self.process.log()


@pytest.fixture
def spillorigin():
    """spillorigin(options...) starts one; each must end with status 0 and without a sanitizer's report."""
    started = []

    def start(*options):
        started.append(SpillOrigin(*options))
        return started[-1]
    yield start
    for one in started:
        one.stop()


def spillload(*arguments, check=True):
    """Runs spillload; returns (completed process, {flow name: summary})."""
    path = os.path.join(process.scratch(), "summary.json")
    done = process.run([process.program("spillload"), "--json", path, *arguments], check=check)
    assert "Sanitizer" not in done.stderr, done.stderr
    flows = {}
    if os.path.exists(path):
        with open(path) as file:
            flows = {flow["name"]: flow for flow in json.load(file)["flows"]}
    return done, flows


def total(flows):
    """Requests that were answered well, of all flows; every one that was offered must be among them."""
    for flow in flows.values():
        assert flow["outcomes"]["ok"] == flow["offered"], flow
        assert flow["outcomes"]["ok"] == flow["latency"]["count"]
        assert flow["unfinished"] == 0
    return sum(flow["outcomes"]["ok"] for flow in flows.values())


def test_http_counts_agree_on_both_sides(spillorigin):
    origin = spillorigin("--service", "2ms", "--slots", "4")
    target = f"target={origin.address['http']}"
    _, flows = spillload(
        "--flow", f"name=open,{target},rate=200/s",
        "--flow", f"name=even,{target},rate=100/s,arrival=constant,path=/?bytes=70000",
        "--flow", f"name=onoff,{target},rate=300/s,on=200ms,off=200ms",
        "--flow", f"name=upload,{target},concurrency=2,think=3ms,method=PUT,bytes=30000",
        "--duration", "1200ms", "--drain", "20s")
    stats = origin.stats("http")
    assert stats["requests"] == stats["completed"] == total(flows)
    assert stats["bytes_in"] == 30000 * flows["upload"]["outcomes"]["ok"]
    assert stats["bytes_out"] == sum(
        flow["outcomes"]["ok"] * (70000 if name == "even" else 128) for name, flow in flows.items())
    assert stats["errors"] == 0
    assert flows["even"]["offered"] in (119, 120)       # one every 10 ms, the last at the very end
    assert flows["upload"]["loop"] == "closed" and flows["open"]["loop"] == "open"


@pytest.mark.parametrize("operation, moved", [("read", "bytes_out"), ("write", "bytes_in"), ("getattr", None),
                                              ("lookup", None), ("access", None)])
def test_nfs_counts_agree_on_both_sides(spillorigin, operation, moved):
    origin = spillorigin()
    _, flows = spillload(
        "--flow", f"name=a,proto=nfs,target={origin.address['nfs']},op={operation},bytes=65537,rate=300/s,uid=1001",
        "--flow", f"name=b,proto=nfs,target={origin.address['nfs']},op={operation},bytes=65537,concurrency=6,think=10ms",
        "--duration", "600ms", "--drain", "20s")
    stats = origin.stats("nfs")
    # Each connection asked for the limits, each flow looked up the file and read its attributes.
    set_up = stats["connections"] + 2 * len(flows)
    assert stats["connections"] == 8
    assert stats["requests"] - set_up == total(flows)
    if moved:
        assert stats[moved] == 65537 * total(flows)
        field = {"bytes_out": "bytes_in_per_s", "bytes_in": "bytes_out_per_s"}[moved]
        for flow in flows.values():
            assert flow[field] == pytest.approx(65537 * flow["outcomes"]["ok"] / 0.6, rel=1e-6)


def test_what_is_above_the_concurrency_waits_and_its_latency_says_so(spillorigin):
    origin = spillorigin("--service", "20ms", "--distribution", "fixed", "--slots", "1")
    done, flows = spillload("--flow", f"name=late,target={origin.address['http']},rate=200/s,arrival=constant,concurrency=1",
                            "--duration", "500ms", "--drain", "60s")
    late = flows["late"]
    # 50 a second are served of 200: the last of 100 requests waits for the 1.5 s by which the service is behind.
    assert late["outcomes"]["ok"] == late["offered"] >= 99
    assert late["delayed"] >= 90
    assert late["latency"]["max_ms"] >= 1400
    assert origin.stats("http")["waiting_peak"] == 0, "no more than one request may be at the service"
    assert "waited for concurrency=1" in done.stderr


def test_requests_without_a_reply_at_the_end_are_told(spillorigin):
    origin = spillorigin("--slots", "0", "--service", "1ms")
    done, flows = spillload("--flow", f"name=stuck,target={origin.address['http']},concurrency=3", "--duration", "300ms",
                            "--drain", "0", check=False)
    assert done.returncode == 1
    assert flows["stuck"]["unfinished"] == 3
    assert "no request to" in done.stderr and "had no reply when the run ended" in done.stderr


def test_a_slow_service_makes_timeouts_and_late_replies_are_ignored(spillorigin):
    origin = spillorigin("--service", "400ms", "--distribution", "fixed", "--slots", "64")
    _, flows = spillload(
        "--flow", f"name=web,target={origin.address['http']},rate=20/s,timeout=100ms",
        "--flow", f"name=nas,proto=nfs,target={origin.address['nfs']},rate=20/s,timeout=100ms,start=100ms",
        "--duration", "1s", "--drain", "20s", check=False)
    for flow in flows.values():
        assert flow["outcomes"]["timeout"] == flow["offered"] > 0, flow


def test_capacity_changes_while_requests_wait(spillorigin):
    origin = spillorigin("--slots", "0", "--service", "1ms")
    load = process.Process("spillload", [
        process.program("spillload"), "--flow", f"proto=nfs,target={origin.address['nfs']},concurrency=5",
        "--duration", "60s"])
    process.wait_until(lambda: origin.stats("nfs")["waiting"] == 4, "the four connections' set-up calls wait")
    status, _ = origin.request("PUT", "/_origin/slots?n=3&protocol=nfs")
    assert status == 200
    assert origin.stats("nfs")["slots"] == 3 and origin.stats("http")["slots"] == 0
    process.wait_until(lambda: origin.stats("nfs")["completed"] > 50, "calls are served")
    load.send_signal(signal.SIGINT)
    assert load.wait() == 0, load.log()


def test_a_refused_connection_is_an_error_of_its_kind():
    port = process.free_port()
    done, flows = spillload("--flow", f"name=web,target=127.0.0.1:{port},rate=50/s", "--duration", "300ms", check=False)
    assert done.returncode == 1
    assert flows["web"]["outcomes"]["connect"] == flows["web"]["offered"] > 0
    assert f"no request to 127.0.0.1:{port} succeeded, connect" in done.stderr


@pytest.mark.parametrize("arguments, message", [
    ([], "no --flow was given"),
    (["--flow", "rate=1/s"], "target=HOST:PORT is missing"),
    (["--flow", "target=127.0.0.1:1,rate=1/s", "--duration", "5"], "a time with its unit"),
    (["--flow", "name=x,target=127.0.0.1:1,rate=1/s", "--flow", "name=x,target=127.0.0.1:1,rate=1/s"], "names that differ"),
    (["--flow", "target=127.0.0.1:1,rate=1/s", "surplus"], "unexpected argument"),
])
def test_a_wrong_command_line_is_status_2_with_a_reason(arguments, message):
    done, _ = spillload(*arguments, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def test_live_lines_in_json_are_one_object_per_second(spillorigin):
    origin = spillorigin()
    done, _ = spillload("--flow", f"name=web,target={origin.address['http']},rate=100/s", "--duration", "2s", "--live=json")
    seconds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["second"] for line in seconds] == [1, 2]
    assert all(line["flows"][0]["name"] == "web" and line["flows"][0]["rate"] > 0 for line in seconds)
