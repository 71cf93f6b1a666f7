# SPDX-License-Identifier: Apache-2.0
"""Shapes of load against nginx: as many requests as the shape's integral says, each once; traces made, shown and
replayed; retries after refusals; a generator that can't keep up says so."""
import collections
import math
import os
import re

import pytest

from lab import http, load, process

SHAPES = ["big-spike", "dual-phase", "large-variation", "quick-varying", "slow-varying", "steep-tri-phase",
          "production-day"]
TRACES = os.path.join(os.path.dirname(__file__), "..", "..", "..", "conf", "traces")


class LimitedNginx(http.Nginx):
    """Refuses with 503 what is above 40 a second at /limited."""

    CONFIGURATION = http.Nginx.CONFIGURATION.replace(
        "  server {{", "  limit_req_zone $server_name zone=all:1m rate=40r/s;\n  server {{").replace(
        "    location = /who", "    location = /limited {{ limit_req zone=all burst=2 nodelay; }}\n    location = /who")


@pytest.fixture
def nginx():
    server = LimitedNginx()
    server.put("limited", b"some\n")
    yield server
    server.close()


def run(flow, duration, extra=()):
    """One flow to its end; (figures, what it said)."""
    one = load.Load([flow], duration, ["--drain", "100s", *extra])
    try:
        return one.result()["flow1"], one.process.log()
    finally:
        one.close()


def scratch_file(name, text):
    path = os.path.join(process.scratch(), name)
    with open(path, "w") as file:
        file.write(text)
    return path


RATES = "# spillload-trace: rates 100ms\n10\n0\n300\n50\n"          # 36 requests in 0.4 s
TIMES = "# spillload-trace: times ms\n" + "".join(f"{at},/some\n" for at in (0, 3, 3, 3, 50, 120, 299.5))

# What is due at the very end does not come any more: 120 requests wanted are 119 sent.
CASES = {
    "steps": ("arrival=constant,steps=200/s:100ms 0/s:50ms 400/s:100ms", "500ms", 2 * (20 + 40) - 1),
    "square wave, fast": ("arrival=constant,steps=15/s:10m 35/s:10m 15/s:10m 150/s:10m,speed=3600,scale=10",
                          "666666667ns", 10 * (15 + 35 + 15 + 150) / 6),
    "sine": ("arrival=constant,rate=100/s,sine=100/s:200ms", "500ms", 50 + 100 * 0.2 / (2 * math.pi) * 2),
    "ramp": ("arrival=constant,ramp=400/s:500ms", "600ms", 400 / 2 * 0.5 + 400 * 0.1 - 1),
    "on and off": ("arrival=constant,rate=300/s,on=100ms,off=50ms", "400ms", 30 + 30 + 30 - 1),
    "trace of rates": ("arrival=constant,trace={rates}", "1s", 36 - 1),
    "faster": ("arrival=constant,trace={rates},speed=2,scale=3", "1s", 36 * 3 / 2 - 1),
    "over and over": ("arrival=constant,trace={rates},repeat=yes", "1s", 36 + 36 + 1),
    "trace of times": ("trace={times}", "1s", 7),
    "times, faster": ("trace={times},speed=3", "100ms", 7),
}


@pytest.mark.parametrize("case", CASES)
def test_a_shape_sends_its_integral_each_request_once(nginx, case):
    keys, duration, wanted = CASES[case]
    keys = keys.format(rates=scratch_file("rates.trace", RATES), times=scratch_file("times.trace", TIMES))
    flow, log = run(f"target={nginx.address},path=/index.html?n={{number}},{keys}", duration)
    # Within one where the last is due as the run ends, to the digit of a double.
    assert flow["offered"] in {math.floor(wanted + 1e-6), math.floor(wanted - 1e-6)}, log
    assert flow["outcomes"]["ok"] == flow["offered"] and flow["unfinished"] == 0
    lines = collections.Counter(line for _, line, *_ in nginx.access())
    assert lines == {f"GET /index.html?n={n} HTTP/1.1": 1 for n in range(flow["offered"])}


def test_a_built_in_trace_is_replayed_by_name(nginx):
    with open(os.path.join(TRACES, "big-spike.trace")) as file:
        total = sum(float(line) for line in file if not line.startswith("#"))
    flow, _ = run(f"target={nginx.address},arrival=constant,trace=big-spike,speed=1440,scale=10", "2s")
    assert abs(flow["offered"] - total * 10 / 1440) <= 1
    assert flow["outcomes"]["ok"] == flow["offered"] == len(nginx.access())


# ---------------------------------------------------------------- retries

def test_refused_requests_are_sent_again_until_they_are_taken(nginx):
    flow, log = run(f"target={nginx.address},arrival=constant,rate=200/s,retry=20ms,path=/limited?n={{number}}", "200ms")
    assert flow["offered"] in (39, 40)
    assert flow["outcomes"]["ok"] == flow["offered"] and flow["outcomes"]["refused"] == 0, log
    statuses = collections.Counter(status for _, _, status, *_ in nginx.access())
    assert statuses["200"] == flow["offered"]
    assert statuses["503"] == flow["retried"] > 0
    taken = [line for _, line, status, *_ in nginx.access() if status == "200"]
    assert len(set(taken)) == flow["offered"], "each request is taken once, whatever its tries"


def test_without_retries_a_refusal_is_final(nginx):
    flow, _ = run(f"target={nginx.address},arrival=constant,rate=200/s,path=/limited", "200ms")
    statuses = collections.Counter(status for _, _, status, *_ in nginx.access())
    assert flow["outcomes"]["ok"] == statuses["200"] > 0
    assert flow["outcomes"]["refused"] == statuses["503"] > 0
    assert flow["retried"] == 0
    assert flow["offered"] == len(nginx.access())


def test_closed_loop_clients_wait_for_their_request_through_its_retries(nginx):
    flow, _ = run(f"target={nginx.address},concurrency=4,think=1ms,retry=5ms,retries=2,pause=7ms,path=/limited?n={{number}}",
                  "500ms")
    tries = collections.Counter(line for _, line, *_ in nginx.access())
    statuses = collections.Counter(status for _, _, status, *_ in nginx.access())
    assert max(tries.values()) == 3
    assert flow["outcomes"]["ok"] == statuses["200"]
    assert statuses["503"] == flow["retried"] + flow["outcomes"]["refused"]
    assert flow["offered"] == flow["outcomes"]["ok"] + flow["outcomes"]["refused"] == len(tries)


# ---------------------------------------------------------------- saturation

def test_a_generator_that_falls_behind_says_so():
    origin = load.Service()
    flow, log = run(f"target={origin.http},arrival=constant,rate=1000000/s", "60ms")
    origin.close()
    assert flow["offered"] in (59999, 60000)
    assert flow["outcomes"]["ok"] == flow["offered"]
    assert flow["late"] > flow["offered"] / 100, "nobody sends a million a second from one thread"
    assert flow["latency"]["max_ms"] >= flow["late_max_ms"]
    assert "the generator or its machine is saturated" in log


# ---------------------------------------------------------------- spillload trace

def trace(*arguments, check=True):
    return process.run([process.program("spillload"), "trace", *arguments], check=check)


@pytest.mark.parametrize("name", SHAPES)
def test_the_trace_files_are_what_the_generator_makes(name):
    with open(os.path.join(TRACES, f"{name}.trace")) as file:
        assert trace("make", name).stdout == file.read()


def test_traces_are_made_to_measure():
    path = os.path.join(process.scratch(), "spike.trace")
    trace("make", "big-spike", "--seed", "3", "--length", "1m", "--peak", "2500/s", "--output", path)
    with open(path) as file:
        lines = file.read().splitlines()
    rates = [float(line) for line in lines if not line.startswith("#")]
    assert "# spillload-trace: rates 1s" in lines
    assert len(rates) == 60 and max(rates) == 2500 and min(rates) > 0
    shown = trace("show", path).stdout
    assert re.search(r"60 rates over 60s, \d+ requests", shown) and "peak 2500/s" in shown
    assert sum(rates) == pytest.approx(float(re.search(r"(\d+) requests", shown).group(1)), abs=1)
    assert trace("make", "big-spike", "--seed", "4", "--length", "1m", "--peak", "2500/s").stdout.splitlines() != lines


def test_a_trace_of_times_is_shown():
    shown = trace("show", scratch_file("times.trace", TIMES)).stdout
    assert "7 times over" in shown and "first at 0 ns, last at 299500000 ns" in shown


@pytest.mark.parametrize("arguments, status, said", [
    ([], 2, "usage:"),
    (["make"], 2, "expected a shape's name"),
    (["make", "no-such"], 2, "make no-such: expected a shape's name"),
    (["make", "big-spike", "--length", "5s"], 2, "--length 5s: expected"),
    (["make", "big-spike", "--peak", "0"], 2, "--peak 0: expected"),
    (["make", "big-spike", "more"], 2, "make more: expected nothing"),
    (["make", "big-spike", "--output", "/nonexistent/x"], 1, "/nonexistent/x: No such file"),
    (["make", "big-spike", "--output", "/dev/full"], 1, "/dev/full: No space left"),
    (["show"], 2, "expected one file"),
    (["show", "/nonexistent/x"], 1, "/nonexistent/x: No such file"),
    (["show", "/dev/null"], 1, "/dev/null: no request in it"),
])
def test_what_is_wrong_is_said(arguments, status, said):
    done = trace(*arguments, check=False)
    assert done.returncode == status and said in done.stderr


def test_a_flow_names_the_line_of_its_trace_that_is_wrong():
    path = scratch_file("bad.trace", "# spillload-trace: rates 1s\n1\n2\n-3\n")
    done = process.run([process.program("spillload"), "--flow", f"target=127.0.0.1:1,trace={path}"], check=False)
    assert done.returncode == 2
    assert f"{path}: line 4: '-3': expected a rate" in done.stderr
