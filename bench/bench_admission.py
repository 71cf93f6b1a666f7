#!/usr/bin/env python3
"""admission on the real road: waits, use and refusals beside HAProxy's and nginx's, steady and not"""
# SPDX-License-Identifier: Apache-2.0

import concurrent.futures
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import peers
from lab import LOAD_CORE, ROUNDS, SECONDS, BenchError, Lab, free_port, pin, program, progress, wanted
from report import Report

# The service that the policies are judged by: 500 requests a second.
SLOTS = 16
SERVICE_MS = 32
CAPACITY = SLOTS * 1000 / SERVICE_MS
LOADS = (0.5, 0.8, 0.9, 1.2, 2, 10)
POLICIES = ("none", "tail", "codel", "pie", "duk-literal", "duk")
HAPROXY = "haproxy, maxconn + queue timeout"
NGINX = "nginx, limit_req"
WINDOW_S = SECONDS + 5
WARM_UP_S = 2
STEADY_ROUNDS = (ROUNDS + 1) // 2
# What falls and rises again: the part of the slots that work; and for how long each. The gate's depth
# stays, so what it sends on too early waits in the service.
PHASES = (1, 0.5, 0.2, 0.5, 1)
PHASE_S = round(SECONDS + 1)
SCHEDULE_LOADS = (0.5, 0.8, 1.2, 2, 10)
# Mostly timers, hardly processors: some roads at a time do not disturb each other, but where the
# load sends 5,000 a second. A load that was late so often tells of itself, not of the proxy.
AT_A_TIME = 3
AT_A_TIME_HEAVY = 1
LATE_MOST = 0.25
QUEUE_TIMEOUT_MS = 50
CLIENTS = 200
RETRY_MS = 50
QUIET_PER_S = 150
# load -> wait in ms, its 99th percentile, use in %, refused beyond the ideal in points: at most (of
# the use at least), as simulated; see docs/admission.md. Targets without a figure are None.
TARGETS = {
    0.5: (None, None, None, 0.1),
    0.8: (None, None, None, 1.3),
    0.9: (None, None, None, 1.0),
    1.2: (16.0, 48, 97.7, 1.5),
    2: (25.0, 85, 99.5, 0.5),
    10: (23.0, 75, 99.5, 0.5),
}

SPILLWAY = """\
workers: 1
log: {{ target: stderr, level: warning, access: {access}, format: json }}
listeners:
  - {{ name: web, bind: ["127.0.0.1:{port}"], protocol: http, pool: farm }}
pools:
  - name: farm
    servers: [ {{ address: "{origin}", depth: {slots} }} ]
    admission: {{ algorithm: {policy}, limit: 64 }}
    queue: {{ limit: 100000, flow-limit: 100000, timeout: 60s }}
    idle-connections: 1000
    flows:
      - {{ name: noisy, weight: 1, match: {{ header: {{ X-Flow: noisy }} }} }}
      - {{ name: quiet, weight: 1, match: {{ header: {{ X-Flow: quiet }} }} }}
"""


# What the loads said of themselves, and what failed other than by a refusal.
disturbed = []
failures = []


class Origin:
    """A service of its own for each road, so that roads can run beside each other."""

    def __init__(self, lab, seed):
        self.child = lab.start(
            "spillorigin",
            [need("spillorigin"), "--http", "127.0.0.1:0", "--slots", str(SLOTS), "--service",
             f"{SERVICE_MS}ms", "--seed", str(seed)], LOAD_CORE)
        line = self.child.wait_for_line("listening ")
        self.address = dict(part.split("=") for part in line.split())["http"]
        self.child.wait_for_line("ready")

    def stats(self):
        page = urllib.request.urlopen(f"http://{self.address}/_origin/stats", timeout=5).read()
        return json.loads(page)["http"]

    def schedule(self, steps):
        url = f"http://{self.address}/_origin/schedule?value={urllib.request.quote(steps)}"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=5).read()


def need(name):
    path = program(name)
    if not path:
        raise BenchError(f"{name} is missing: run make first")
    return path


def start_spillway(lab, origin, policy):
    port = free_port()
    access = lab.folder / f"access-{port}.log"
    text = SPILLWAY.format(access=access, port=port, origin=origin.address, slots=SLOTS, policy=policy)
    config = lab.write(f"spillway-{port}.yaml", text)
    child = lab.start("spillway", [need("spillway"), "-f", config], 0).wait_for_port(port)
    child.access = access
    return child


def start_haproxy(lab, origin):
    port = free_port()
    text = peers.haproxy_global().replace("timeout queue 60s", f"timeout queue {QUEUE_TIMEOUT_MS}ms")
    return peers.haproxy(lab, text + f"""\
    mode http
    http-reuse always
    retries 0
frontend web
    bind 127.0.0.1:{port}
    default_backend farm
backend farm
    server one {origin.address} pool-max-conn 256 maxconn {SLOTS}
""", port)


def start_nginx(lab, origin):
    """
    The nominal rate and as long a queue as slots: what its manual suggests. One key for all; it must
    not be empty (`$server_name` would be), for those requests are not counted.
    """
    class Backend:
        address = origin.address

    if not peers.tool("nginx"):
        return None
    child = peers.nginx_http(lab, Backend)
    lab.stop(child)
    path = next(lab.folder.glob(f"nginx-{child.port}.conf"))
    text = path.read_text().replace(
        "    upstream farm",
        f"    limit_req_zone $server_port zone=all:1m rate={round(CAPACITY)}r/s;\n"
        "    limit_req_status 503;\n    upstream farm").replace(
        "        location / {", f"        location / {{\n            limit_req zone=all burst={SLOTS};")
    path.write_text(text)
    again = lab.start("nginx", [peers.tool("nginx"), "-c", str(path), "-e",
                                str(lab.folder / f"nginx-{child.port}" / "start.log")], 0)
    return again.wait_for_port(child.port)


def start(lab, name, origin):
    if name == HAPROXY:
        return start_haproxy(lab, origin)
    if name == NGINX:
        return start_nginx(lab, origin)
    return start_spillway(lab, origin, name)

# ---------------------------------------------------------------- one run


class Watch:
    """What the origin says, and how long our own log is, at some moments: `moments` in s from now."""

    def __init__(self, origin, child, moments):
        self.seen = []
        self.thread = threading.Thread(
            target=self.look, args=(origin, child, [time.monotonic() + one for one in moments]))
        self.thread.start()

    def look(self, origin, child, moments):
        for moment in moments:
            time.sleep(max(0.0, moment - time.monotonic()))
            access = getattr(child, "access", None)
            logged = access.stat().st_size if access else 0
            self.seen.append((time.monotonic(), origin.stats(), access, logged))

    def spans(self, parts=(1,)):
        """From each moment to the next, with so large a part of the slots."""
        self.thread.join()
        return [Span(before, after, SLOTS * part)
                for before, after, part in zip(self.seen, self.seen[1:], parts)]


class Span:
    """What happened between two looks."""

    def __init__(self, before, after, slots):
        (begin, first, access, logged), (end, last, _, logged_then) = before, after
        self.done = last["completed"] - first["completed"]
        # The part of the slots' time in which they worked; more precise than done by capacity.
        self.use = (last["busy_ns"] - first["busy_ns"]) / (slots * (end - begin) * 1e9)
        self.seconds = end - begin
        self.service_ms = (last["busy_ns"] - first["busy_ns"]) / max(1, self.done) / 1e6
        waits = waits_ms(access, logged, logged_then) if access else []
        self.wait_p99_ms = waits[len(waits) * 99 // 100] if waits else None

    def capacity(self, nominal):
        """What could have been done per second, by the work as it was drawn."""
        return self.done / self.seconds / self.use if self.use > 0.5 else nominal


def run_load(lab, name, flows, seconds, warm_up_s, seed):
    """spillload's summary by flow, and its lines per second."""
    stem = lab.folder / f"load-{name.split(',')[0]}-{time.monotonic_ns()}"
    words = [word for text in flows for word in ("--flow", text)]
    done = subprocess.run(
        [need("spillload"), *words, "--duration", f"{round(seconds * 1000)}ms", "--warmup",
         f"{round(warm_up_s * 1000)}ms", "--drain", "20s", "--seed", str(seed), "--live=off",
         "--json", f"{stem}.json", "--csv", f"{stem}.csv"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=seconds + warm_up_s + 60, preexec_fn=lambda: pin(LOAD_CORE))
    if done.returncode not in (0, 1) or not os.path.exists(f"{stem}.json"):
        raise BenchError(f"spillload: status {done.returncode}\n{done.stdout}{done.stderr}")
    with open(f"{stem}.json", encoding="utf-8") as file:
        summary = {one["name"]: one for one in json.load(file)["flows"]}
    offered, late = (sum(one[key] for one in summary.values()) for key in ("offered", "late"))
    if late > LATE_MOST * offered:
        disturbed.append(f"{name}: {late / offered:.0%} of {offered} requests were sent over 1 ms late")
    failed = sum(count for one in summary.values() for outcome, count in one["outcomes"].items()
                 if outcome not in ("ok", "refused"))
    if failed:
        failures.append(f"{name}: {failed} of {offered} requests failed, neither served nor refused")
    with open(f"{stem}.csv", encoding="utf-8") as file:
        return summary, list(csv.DictReader(file))


def waits_ms(path, begin, end):
    """What each request waited that our own log says was answered, between two lengths of the log."""
    with open(path, encoding="utf-8") as file:
        file.seek(begin)
        lines = file.read(end - begin).splitlines()[1:]
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return sorted(one["wait_us"] / 1000 for one in records if one["status"] == 200)


def flow_text(child, rate, name="all", more=""):
    return f"name={name},target=127.0.0.1:{child.port},rate={rate},concurrency=6000{more}"


def road(name, work, lab_of=Lab, seed=1):
    """Builds a road of its own, does `work(lab, origin, child)` on it, and takes it down."""
    with lab_of() as lab:
        origin = Origin(lab, seed)
        child = start(lab, name, origin)
        return work(lab, origin, child) if child else None


class QuietLab(Lab):
    """A lab of a thread: signals are the main one's."""

    def __enter__(self):
        return self


def beside(jobs, at_a_time):
    """Runs the jobs, some at a time, and returns their results by name."""
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        started = {name: pool.submit(job) for name, job in jobs.items()}
        return {name: one.result() for name, one in started.items()}


def contenders():
    names = list(POLICIES)
    if peers.tool("haproxy"):
        names.append(HAPROXY)
    if peers.tool("nginx"):
        names.append(NGINX)
    return names

# ---------------------------------------------------------------- steady


def measured(summary, span):
    """What one run comes to: waits, use, and what was refused beyond the ideal."""
    offered = summary["offered"]
    refused = 1 - summary["outcomes"]["ok"] / offered
    ideal = max(0.0, 1 - span.capacity(CAPACITY) / summary["offered_per_s"])
    return {
        "wait": summary["latency"]["mean_ms"] - span.service_ms,
        "wait p99": span.wait_p99_ms,
        "p99": summary["latency"]["p99_ms"],
        "use": 100 * span.use,
        "beyond": 100 * (refused - ideal),
    }


def steady_run(name, load, number):
    def work(lab, origin, child):
        watch = Watch(origin, child, [WARM_UP_S, WARM_UP_S + WINDOW_S])
        summary, _ = run_load(lab, name, [flow_text(child, load * CAPACITY)], WINDOW_S, WARM_UP_S,
                              number + 1)
        return measured(summary["all"], watch.spans()[0])

    # Other services each round, the same for all: the rounds' spread shows the draws' noise too.
    return road(name, work, QuietLab, number + 1)


FIGURES = (("wait", "ms"), ("wait p99", "ms"), ("p99", "ms"), ("use", "%"), ("beyond", "points"))
TITLES = {"wait": "wait", "wait p99": "wait, 99th percentile", "p99": "response, 99th percentile",
          "use": "use of the slots", "beyond": "refused beyond the ideal"}


def goal_of(load, figure):
    wait, p99, use, beyond = TARGETS.get(load, (None,) * 4)
    limit = {"wait": wait, "wait p99": p99, "use": use, "beyond": beyond}.get(figure)
    if limit is None:
        return None
    return f"ratio >= {limit / 100}" if figure == "use" else f"value <= {limit}"


def allow_for_the_road(results, load):
    """
    From one answer to the next request a slot is idle for as long as the road is, whatever the policy:
    nobody can have served more than what is served without one, `none`, at more than the capacity.
    """
    best = middle(results["none"], "use") / 100 if load > 1 else 1.0
    for runs in results.values():
        for run in runs:
            if run:
                run["beyond"] -= 100 * (1 - best) / load
    return best


def middle(runs, figure):
    figures = [run[figure] for run in runs if run and run[figure] is not None]
    return statistics.median(figures) if figures else None


def spread(runs, figure):
    figures = [run[figure] for run in runs if run and run[figure] is not None]
    return max(figures) - min(figures) if figures else 0.0


def add_matrix(report, title, results):
    report.add_matrix(title, [f"{words}, {unit}" for words, unit in
                              (("wait", "ms"), ("its p99", "ms"), ("response p99", "ms"),
                               ("use", "%"), ("refused - ideal", "points"))],
                      [(name, [middle(runs, figure) for figure, _ in FIGURES])
                       for name, runs in results.items()])


def add_rows(report, title, results, load):
    """A row per figure and contender beside duk; the first has the goal."""
    ours = results["duk"]
    best = allow_for_the_road(results, load)
    add_matrix(report, title, results)
    for figure, unit in FIGURES:
        value = middle(ours, figure)
        name = f"{title}: {TITLES[figure]}"
        if figure != "use":
            report.add(name, value, unit, goal=goal_of(load, figure))
        elif load > 1:
            report.add(name, value, unit, "none", 100 * best, value / best / 100,
                       goal=goal_of(load, figure))
        for peer, runs in results.items():
            theirs = middle(runs, figure)
            if peer != "duk" and theirs is not None:
                report.add(name, value, unit, peer, theirs)
    report.note(f"{title}: duk's rounds differ by up to {spread(ours, 'wait'):.1f} ms of wait, "
                f"{spread(ours, 'wait p99'):.0f} ms of its 99th percentile, "
                f"{spread(ours, 'use'):.1f} % of use, {spread(ours, 'beyond'):.2f} points")


def steady(report):
    for load in LOADS:
        title = f"load {load:g}"
        if not wanted(title):
            continue
        results = {name: [] for name in contenders()}
        for number in range(STEADY_ROUNDS):
            progress(f"{title}: round {number + 1} of {STEADY_ROUNDS}")
            jobs = {name: lambda name=name: steady_run(name, load, number) for name in results}
            for name, result in beside(jobs, AT_A_TIME_HEAVY if load > 5 else AT_A_TIME).items():
                results[name].append(result)
        progress("")
        add_rows(report, title, results, load)

# ---------------------------------------------------------------- the capacity falls and rises


def phase_of(lines, number, span, capacity, offered_per_s):
    """The seconds of one phase together."""
    begin = WARM_UP_S + number * PHASE_S
    rows = [row for row in lines if begin + 0.5 < float(row["time_s"]) <= begin + PHASE_S + 0.5]
    done = [(float(row["rate_per_s"]), float(row["mean_ms"] or 0)) for row in rows]
    answered = sum(rate for rate, _ in done)
    offered = sum(float(row["offered"]) for row in rows)
    refused = sum(float(row["refused"]) for row in rows)
    ideal = max(0.0, 1 - span.capacity(capacity) / offered_per_s)
    mean = sum(rate * ms for rate, ms in done) / answered if answered else 0.0
    return {
        "wait": mean - span.service_ms,
        "wait p99": span.wait_p99_ms,
        "p99": max(float(row["p99_ms"] or 0) for row in rows),
        "use": 100 * span.use,
        "beyond": 100 * (refused / offered - ideal) if offered else 0.0,
    }


def schedule_run(name, load):
    def work(lab, origin, child):
        lengths = [WARM_UP_S + PHASE_S] + [PHASE_S] * (len(PHASES) - 1)
        origin.schedule(" ".join(f"{round(100 * part)}%:{round(length * 1000)}ms"
                                 for part, length in zip(PHASES, lengths)))
        watch = Watch(origin, child, [WARM_UP_S + i * PHASE_S for i in range(len(PHASES) + 1)])
        rate = load * CAPACITY
        _, lines = run_load(lab, name, [flow_text(child, rate)], PHASE_S * len(PHASES), WARM_UP_S, 1)
        return [phase_of(lines, i, span, part * CAPACITY, rate)
                for i, (part, span) in enumerate(zip(PHASES, watch.spans(PHASES)))]

    return road(name, work, QuietLab)


def schedule(report):
    for load in SCHEDULE_LOADS:
        title = f"falling capacity, {load:g}"
        if not wanted(title):
            continue
        progress(title)
        jobs = {name: lambda name=name: schedule_run(name, load) for name in contenders()}
        results = beside(jobs, AT_A_TIME_HEAVY if load > 5 else AT_A_TIME)
        progress("")
        for i, part in enumerate(PHASES):
            phase = {name: [runs[i]] for name, runs in results.items() if runs}
            allow_for_the_road(phase, load / part)
            name = f"{title}, {'then ' if i > 2 else ''}{part:.0%}"
            add_matrix(report, name, phase)
            for figure, unit in FIGURES:
                value = middle(phase["duk"], figure)
                for peer, runs in phase.items():
                    if peer != "duk" and middle(runs, figure) is not None:
                        report.add(f"{name}: {TITLES[figure]}", value, unit, peer,
                                   middle(runs, figure))

# ---------------------------------------------------------------- clients that come again


def retry_run(name):
    def work(lab, _, child):
        flows = [f"name=all,target=127.0.0.1:{child.port},concurrency={CLIENTS},retry={RETRY_MS}ms"]
        summary, _ = run_load(lab, name, flows, WINDOW_S, WARM_UP_S, 1)
        one = summary["all"]
        return {"goodput": 100 * one["throughput_per_s"] / CAPACITY,
                "retries": one["retried"] / max(1, one["completed"]),
                "p99": one["latency"]["p99_ms"]}

    return road(name, work, QuietLab)


def retries(report):
    """A closed loop: whoever is refused comes again after 50 ms, until it is served."""
    title = f"{CLIENTS} clients, again after {RETRY_MS} ms"
    if not wanted(title):
        return
    progress(title)
    results = beside({name: lambda name=name: retry_run(name) for name in contenders()}, AT_A_TIME)
    progress("")
    ours = results["duk"]
    report.add_matrix(title, ["goodput, %", "retries per request", "p99 of all tries, ms"],
                      [(name, list(result.values())) for name, result in results.items() if result])
    for figure, unit in (("goodput", "%"), ("retries", "per request"), ("p99", "ms")):
        name = {"goodput": "goodput by capacity", "retries": "retries",
                "p99": "from first try to answer, 99th percentile"}[figure]
        for peer, result in results.items():
            if peer == "duk" or not result:
                continue
            # `none` refuses nobody and never idles: what it lacks, the road and the machine take.
            judged = figure == "goodput" and peer == "none"
            report.add(f"{title}: {name}", ours[figure], unit, peer, result[figure],
                       ours[figure] / result[figure] if judged else None,
                       goal="ratio >= 0.98" if judged else None)

# ---------------------------------------------------------------- one flow overloads


def noisy_run(name, noise):
    def work(lab, _, child):
        flows = [flow_text(child, QUIET_PER_S, "quiet", ",header=X-Flow: quiet")]
        if noise:
            flows.append(flow_text(child, 10 * CAPACITY, "noisy", ",header=X-Flow: noisy"))
        summary, _ = run_load(lab, name, flows, WINDOW_S, WARM_UP_S, 1)
        quiet = summary["quiet"]
        return {"refused": 100 * (1 - quiet["outcomes"]["ok"] / quiet["offered"]),
                "p99": quiet["latency"]["p99_ms"], "mean": quiet["latency"]["mean_ms"]}

    return road(name, work, QuietLab)


def noisy(report):
    title = "quiet flow beside ten times the capacity"
    if not wanted(title):
        return
    progress(title)
    names = [name for name in contenders() if name in ("none", "pie", "duk", HAPROXY, NGINX)]
    alone = beside({name: lambda name=name: noisy_run(name, False) for name in names}, AT_A_TIME)
    with_it = beside({name: lambda name=name: noisy_run(name, True) for name in names},
                     AT_A_TIME_HEAVY)
    progress("")
    report.add_matrix(title, ["refused, %", "mean, ms", "alone", "p99, ms", "alone"],
                      [(name, [with_it[name]["refused"], with_it[name]["mean"], alone[name]["mean"],
                               with_it[name]["p99"], alone[name]["p99"]]) for name in names])
    report.add(f"{title}: refused", with_it["duk"]["refused"], "%", goal="value <= 1")
    for name in names:
        if name != "duk":
            report.add(f"{title}: refused", with_it["duk"]["refused"], "%", name,
                       with_it[name]["refused"])
    for figure, words in (("mean", "mean response"), ("p99", "99th percentile")):
        for name in names:
            ratio = with_it[name][figure] / alone[name][figure]
            goal = "ratio <= 1.5" if name == "duk" else None
            report.add(f"{title}: {words}, {name}", with_it[name][figure], "ms", "alone",
                       alone[name][figure], ratio, goal=goal)


def main():
    report = Report("admission", f"admission: {SLOTS} slots x {SERVICE_MS} ms, exponential: "
                    f"{CAPACITY:.0f} requests/s, Poisson arrivals; `ours` is duk")
    # Signals end the roads' children by way of this one.
    with Lab():
        steady(report)
        schedule(report)
        retries(report)
        noisy(report)
    report.note("wait: mean response of what was answered less the mean service time; its 99th "
                "percentile by our own access log")
    report.note(f"{HAPROXY}: {QUEUE_TIMEOUT_MS} ms; {NGINX}: the nominal rate, burst {SLOTS}")
    for text in disturbed + (failures or ["no request failed: each was served or refused"]):
        report.note(text)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-admission: {error}")
