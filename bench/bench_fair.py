#!/usr/bin/env python3
"""shares, isolation and overload at 16 slots x 10 ms, beside what HAProxy offers for it"""
# SPDX-License-Identifier: Apache-2.0

import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

import peers
from lab import (LOAD_CORE, ROUNDS, SECONDS, BenchError, Lab, pin, program, progress, run_load,
                 wanted)
from report import Report

SLOTS = 16
SERVICE_MS = 10
CAPACITY = SLOTS * 1000 / SERVICE_MS
WANTED = 2.0
# A shape, not a rate, is measured: it needs a few seconds more than a rate, and fewer rounds.
WINDOW_S = SECONDS + 2
WARM_UP_S = 1.5
CASE_ROUNDS = (ROUNDS + 1) // 2
FIFO = "haproxy, FIFO"
OUR_FIFO = "spillway, FIFO"
REPEATED = ("spillway", OUR_FIFO, FIFO)
# The offset that gives 2:1 between 64 and 64 connections: B's requests may wait 60 ms longer.
OFFSET_MS = 60
OVERLOAD_S = float(os.environ.get("SPILLWAY_BENCH_OVERLOAD_SECONDS", "20"))
OVERLOAD_WARM_UP_S = 2
# How long a client waits before it gives a request up: what comes later is no good to it.
PATIENCE_S = 1
# Whoever would only make the queue longer is refused.
QUEUE = "    admission: duk\n    queue: { timeout: 1s }\n"

# name -> connections of classes A and B
CASES = {
    "A64/B64": {"A": 64, "B": 64},
    "A32/B256": {"A": 32, "B": 256},
    "B64 alone": {"B": 64},
    "A4 beside B256": {"A": 4, "B": 256},
}


def start_origin(lab):
    path = program("spillorigin")
    if not path:
        raise BenchError("spillorigin is missing: run make first")
    child = lab.start("spillorigin", [path, "--http", "127.0.0.1:0", "--slots", str(SLOTS),
                                      "--service", f"{SERVICE_MS}ms", "--distribution", "fixed"],
                      LOAD_CORE)
    line = child.wait_for_line("listening ")
    child.port = int(dict(part.split("=") for part in line.split())["http"].rsplit(":", 1)[1])
    child.wait_for_line("ready")
    return child


def start_ours(lab, origin, algorithm, name, queue=""):
    flows = """\
      - { name: A, weight: 2, match: { header: { X-Class: A } } }
      - { name: B, weight: 1, match: { header: { X-Class: B } } }"""
    return peers.spillway_http(lab, origin, algorithm, depth=SLOTS, flows=flows, name=name,
                               queue=queue)


def start_split(lab, origin):
    """HAProxy with a back end per class, the slots cut 2:1 between them."""
    port = peers.free_port()
    return peers.haproxy(lab, peers.haproxy_global() + f"""\
    mode http
    http-reuse always
frontend web
    bind 127.0.0.1:{port}
    use_backend a if {{ hdr(X-Class) A }}
    default_backend b
backend a
    server one {origin.address} pool-max-conn 256 maxconn {round(SLOTS * 2 / 3)}
backend b
    server one {origin.address} pool-max-conn 256 maxconn {SLOTS - round(SLOTS * 2 / 3)}
""", port, "haproxy-split")


def start_all(lab, origin):
    """Name -> proxy: ours, then every way HAProxy has to treat two classes differently."""
    limit = f"maxconn {SLOTS}"
    is_a = "{ hdr(X-Class) A }"
    rules = {
        FIFO: "",
        "haproxy, priority class": f"    http-request set-priority-class int(-1) if {is_a}",
        "haproxy, priority offset":
            f"    http-request set-priority-offset int({OFFSET_MS}) unless {is_a}",
    }
    all_of_them = {"spillway": start_ours(lab, origin, "sfqd", "spillway"),
                   OUR_FIFO: start_ours(lab, origin, "fifo", "spillway-fifo")}
    for name, rule in rules.items():
        all_of_them[name] = peers.haproxy_http(lab, origin, server=limit, rules=rule,
                                               name=name.replace(", ", "-").replace(" ", "-"))
    if peers.tool("haproxy"):
        all_of_them["haproxy, split back ends"] = start_split(lab, origin)
    return {name: child for name, child in all_of_them.items() if child}


def run_classes(proxy, classes):
    """Runs one closed loop per class at the same time; class -> result."""
    with concurrent.futures.ThreadPoolExecutor(len(classes)) as pool:
        runs = {name: pool.submit(
            run_load, "httpload", "--target", proxy.address, "--connections", connections,
            "--header", f"X-Class: {name}", "--warm-up", f"{round(WARM_UP_S * 1000)}ms",
            seconds=WINDOW_S, may_starve=True) for name, connections in classes.items()}
        return {name: run.result() for name, run in runs.items()}


def run_case(report, proxies, title):
    """One case with every proxy, in turns; name -> Outcome."""
    runs = {name: [] for name in proxies}
    for number in range(CASE_ROUNDS):
        for name, proxy in proxies.items():
            # Only ours and what it is compared with are repeated; the others show a shape.
            if number == 0 or name in REPEATED:
                progress(f"{title}: round {number + 1} of {CASE_ROUNDS}: {name}")
                proxy.must_live()
                runs[name].append(run_classes(proxy, CASES[title]))
    progress("")
    for name, results in runs.items():
        failed = sum(result["errors"] for run in results for result in run.values())
        if failed:
            report.note(f"{title}: {failed} requests through {name} failed")
    return {name: Outcome(results) for name, results in runs.items()}


class Outcome:
    """The rounds of one case with one proxy."""

    def __init__(self, runs):
        self.runs = runs
        self.totals = [sum(result["requests_per_s"] for result in run.values()) for run in runs]
        self.total = statistics.median(self.totals)

    def median(self, cls, field):
        return statistics.median(run[cls][field] for run in self.runs)

    def share_ratio(self):
        """A's rate by B's; None when B had nothing at all."""
        b = self.median("B", "requests_per_s")
        return self.median("A", "requests_per_s") / b if b else None

    def total_by(self, other):
        """Total rate by another's: the median of the rounds' ratios."""
        return statistics.median(a / b for a, b in zip(self.totals, other.totals) if b)


def add_total(report, title, outcomes, peer, goal=None):
    ours, theirs = outcomes.get("spillway"), outcomes.get(peer)
    if theirs:
        report.add(f"{title}: total rate", ours and ours.total, "req/s", peer, theirs.total,
                   ours and ours.total_by(theirs), goal)


def shares(report, proxies, title):
    """A to B as 2:1 by weight, whatever their numbers of connections, and nothing lost by it."""
    if not wanted(title):
        return
    outcomes = run_case(report, proxies, title)
    ours = outcomes.pop("spillway", None)
    ratio = ours and ours.share_ratio()
    for name, outcome in outcomes.items():
        report.add(f"{title}: A to B, {WANTED:g} wanted", ratio, "ratio", name,
                   outcome.share_ratio())
        if outcome.share_ratio() is None:
            report.note(f"{title}: B had no reply at all through {name}")
    report.add(f"{title}: share error", ratio and abs(ratio / WANTED - 1) * 100, "%",
               goal="value <= 2")
    for name in REPEATED[1:]:
        add_total(report, title, {"spillway": ours, **outcomes}, name, "ratio >= 0.99")


def lone_class(report, proxies):
    """The class of the smaller weight, alone: it gets everything."""
    title = "B64 alone"
    if not wanted(title):
        return
    outcomes = run_case(report, proxies, title)
    for name in outcomes:
        if name != "spillway":
            add_total(report, title, outcomes, name, "ratio >= 0.99" if name in REPEATED else None)


def light_class(report, proxies):
    """A few connections beside a crowd: how long the few wait."""
    title = "A4 beside B256"
    if not wanted(title):
        return
    outcomes = run_case(report, proxies, title)
    p99_ms = {name: outcome.median("A", "p99_us") / 1e3 for name, outcome in outcomes.items()}
    ours = p99_ms.pop("spillway", None)
    for name, theirs in p99_ms.items():
        report.add(f"{title}: 99th percentile of A", ours, "ms", name, theirs)
    report.add(f"{title}: 99th percentile of A, of the service time", ours and ours / SERVICE_MS,
               "times", goal="value <= 2.5")
    for name in REPEATED[1:]:
        add_total(report, title, outcomes, name, "ratio >= 0.99")


def run_overload(lab, proxy, rate):
    """Both classes open-loop at `rate` requests/s each; class -> spillload's summary of it."""
    path = program("spillload")
    if not path:
        raise BenchError("spillload is missing: run make first")
    summary = lab.folder / "overload.json"
    flows = [word for cls in "AB" for word in (
        "--flow", f"name={cls},proto=http,target={proxy.address},rate={rate}/s,"
                  f"header=X-Class:{cls},timeout={PATIENCE_S}s,concurrency=4000")]
    done = subprocess.run(
        [path, *flows, "--warmup", f"{OVERLOAD_WARM_UP_S}s", "--duration",
         f"{round(OVERLOAD_S * 1000)}ms", "--drain", "2s", "--json", str(summary)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=OVERLOAD_S + 60, preexec_fn=lambda: pin(LOAD_CORE))
    # Status 1 says that a flow had no good reply, which is a result here.
    if done.returncode not in (0, 1) or not summary.exists():
        raise BenchError(f"spillload: status {done.returncode}\n{done.stdout}{done.stderr}")
    return {flow["name"]: flow for flow in json.loads(summary.read_text())["flows"]}


def goodput(flows):
    return sum(flow["outcomes"]["ok"] for flow in flows.values()) / OVERLOAD_S


def overload(report, lab, origin, proxies):
    """Twice what the service can do, from clients that wait a second and no longer."""
    title = "overload 2x"
    if not wanted(title):
        return
    progress(f"{title}: capacity, without a proxy")
    capacity = run_classes(origin, {"B": 4 * SLOTS})["B"]["requests_per_s"]
    ours = None
    if program("spillway"):
        limited = start_ours(lab, origin, "sfqd", "spillway-limited", QUEUE)
        progress(f"{title}: spillway")
        ours = run_overload(lab, limited, round(CAPACITY))
        lab.stop(limited)
    theirs = None
    if FIFO in proxies:
        progress(f"{title}: {FIFO}")
        theirs = run_overload(lab, proxies[FIFO], round(CAPACITY))
    progress("")
    report.add(f"{title}: good replies", ours and goodput(ours), "req/s", "capacity", capacity,
               ours and goodput(ours) / capacity, "ratio >= 0.97")
    if theirs:
        report.add(f"{title}: good replies, other proxy", ours and goodput(ours), "req/s",
                   FIFO, goodput(theirs))
    report.add(f"{title}: requests that timed out", ours and timeouts(ours), "requests",
               FIFO if theirs else None, theirs and timeouts(theirs), goal="value <= 0")
    admitted = ours and max(flow["latency"]["p99_ms"] for flow in ours.values())
    refused = ours and max(flow["refusal_latency"]["p99_ms"] for flow in ours.values())
    report.add(f"{title}: 99th percentile of the admitted, of the service time",
               ours and admitted / SERVICE_MS, "times", goal="value <= 3")
    report.add(f"{title}: 99th percentile of a refusal", refused, "ms", goal="value <= 5")
    if ours and ours["B"]["outcomes"]["ok"]:
        share = ours["A"]["outcomes"]["ok"] / ours["B"]["outcomes"]["ok"]
        report.add(f"{title}: A to B, {WANTED:g} wanted", share, "ratio")
    report.note(f"{title}: {2 * CAPACITY:g} requests/s offered for {OVERLOAD_S:g} s; a reply is "
                f"good within {PATIENCE_S} s; ours with `admission: duk`")


def timeouts(flows):
    return sum(flow["outcomes"]["timeout"] + flow["unfinished"] for flow in flows.values())


def main():
    report = Report("fair", f"two classes at a service of {SLOTS} slots x {SERVICE_MS} ms "
                            f"({CAPACITY:g} requests/s), weights 2:1, closed loops; the proxies "
                            f"let {SLOTS} requests through at a time")
    with Lab() as lab:
        origin = start_origin(lab)
        proxies = start_all(lab, origin)
        if not program("spillway"):
            report.note("spillway is not built: the peers alone were measured")
        shares(report, proxies, "A64/B64")
        shares(report, proxies, "A32/B256")
        lone_class(report, proxies)
        light_class(report, proxies)
        overload(report, lab, origin, proxies)
        report.note(f"priority offset: B's requests rank {OFFSET_MS} ms later, which is right for "
                    "64 and 64 connections")
        report.note("ours and FIFO: median of "
                    f"{CASE_ROUNDS} rounds of {WINDOW_S:g} s; the others: one round")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-fair: {error}")
