#!/usr/bin/env python3
"""the scheduling library alone: ns per enqueue, dispatch and complete, for every algorithm"""
# SPDX-License-Identifier: Apache-2.0

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict

from lab import BenchError, PROXY_CORE, pin, program, progress, wanted
from report import Report

ROUNDS = int(os.environ.get("SPILLWAY_BENCH_ROUNDS", "7"))
# The rows for information are many; each moves little.
FEW_ROUNDS = min(ROUNDS, 3)
FLOWS = (1, 100, 10_000, 100_000, 1_000_000)
FEW_FLOWS = FLOWS[:-1]
TURNS = 500_000
RUN_LIMIT_S = 580
SHARED = 0.9

JUDGED = ("sfqd", "fsfq")
BASELINES = ("list", "fifo")
MOST_NS = {1: 25, 100: 80, 10_000: 200, 100_000: 500, 1_000_000: 900}
CHURN_BY_STEADY = 1.5
DMCLOCK_BY_OURS = 3
DMCLOCK_FROM = 100

# Measured once, on another day, in another program: an add and a pull, one thread, 4 requests
# queued per client. Where a range was seen, its lower end: the harder one to beat.
DMCLOCK_NS = {1: 80, 100: 220, 10_000: 1530, 100_000: 1430}
BARE_HEAP_NS = {1: 4, 100: 45, 10_000: 102, 100_000: 270}


class Runs:
    """Results of several rounds by (mode, algorithm, flows)."""

    def __init__(self):
        self.results = defaultdict(list)

    def measure(self, title, rounds, numbers, *arguments):
        """Runs schedbench `rounds` times. Within a run the algorithms take turns."""
        for number in range(rounds):
            for flows in numbers:
                progress(f"{title}: round {number + 1} of {rounds}, {flows:,} flows")
                for result in run(flows, *arguments):
                    self.results[result["mode"], result["algorithm"], flows].append(result)
        progress("")
        return self

    def algorithms(self):
        """Names in the order they were first measured."""
        return list(dict.fromkeys(algorithm for _, algorithm, _ in self.results))

    def ns(self, *key):
        """The median of the rounds, or None when it was not measured."""
        runs = self.results.get(key)
        return statistics.median(run["ns"] for run in runs) if runs else None

    def ratio(self, ours, other):
        """The median of the rounds' ratios: what disturbs a whole round cancels out."""
        pairs = list(zip(self.results.get(ours, ()), self.results.get(other, ())))
        return statistics.median(a["ns"] / b["ns"] for a, b in pairs) if pairs else None

    def processor_part(self):
        """The part of the time that it had its processor, over everything."""
        everything = [run for runs in self.results.values() for run in runs]
        return (sum(run["cpu_ns"] * run["turns"] for run in everything) /
                sum(run["mean_ns"] * run["turns"] for run in everything))


def run(flows, *arguments):
    path = program("schedbench")
    if not path:
        raise BenchError("schedbench is missing: run make first")
    command = [path, "--flows", str(flows), "--turns", str(TURNS), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=RUN_LIMIT_S, preexec_fn=lambda: pin(PROXY_CORE), check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def shown_flows(flows):
    return f"{flows:,} flow{'s' if flows > 1 else ''}"


def add_steady(report, runs, algorithm, flows):
    """What a request costs while every flow has others waiting."""
    ours, fifo = ("steady", algorithm, flows), ("steady", "fifo", flows)
    heap = BARE_HEAP_NS.get(flows)
    report.add(f"steady: {algorithm}, {shown_flows(flows)}", runs.ns(*ours), "ns", "fifo",
               runs.ns(*fifo), runs.ratio(ours, fifo), f"value <= {MOST_NS[flows]}",
               heap and ("4-ary heap alone", heap))
    if flows in DMCLOCK_NS:
        goal = f"reference_ratio <= {1 / DMCLOCK_BY_OURS:.3f}" if flows >= DMCLOCK_FROM else None
        report.add(f"steady: {algorithm}, {shown_flows(flows)}, beside dmclock", runs.ns(*ours),
                   "ns", goal=goal, reference=("dmclock", DMCLOCK_NS[flows]))


def add_churn(report, runs, algorithm, flows):
    """The same when each request wakes an idle flow."""
    ours, steady = ("churn", algorithm, flows), ("steady", algorithm, flows)
    report.add(f"churn: {algorithm}, {shown_flows(flows)}", runs.ns(*ours), "ns", "steady",
               runs.ns(*steady), runs.ratio(ours, steady), f"ratio <= {CHURN_BY_STEADY}")


def steady_and_churn(report):
    if not wanted("steady:") and not wanted("churn:"):
        return None
    runs = Runs().measure("steady and churn", ROUNDS, FLOWS, "--modes", "steady,churn",
                          "--algorithms", ",".join(BASELINES + JUDGED))
    for algorithm in JUDGED:
        for flows in FLOWS:
            add_steady(report, runs, algorithm, flows)
    for algorithm in JUDGED:
        for flows in FLOWS:
            add_churn(report, runs, algorithm, flows)
    for algorithm in BASELINES:
        for mode in ("steady", "churn"):
            for flows in FLOWS:
                report.add(f"{mode}: {algorithm}, {shown_flows(flows)}",
                           runs.ns(mode, algorithm, flows), "ns")
    return runs


def random_weights(report):
    """Weights of 1 to 100 and costs of 1 to 16: heads overtake each other in no order."""
    title = "random weights and costs"
    if not wanted(title):
        return None
    runs = Runs().measure(title, FEW_ROUNDS, FLOWS, "--weights", "random", "--costs", "random",
                          "--algorithms", ",".join(JUDGED))
    for algorithm in JUDGED:
        for flows in FLOWS:
            report.add(f"{title}: {algorithm}, {shown_flows(flows)}",
                       runs.ns("steady", algorithm, flows), "ns")
    return runs


def other_algorithms(report):
    title = "other algorithms"
    if not wanted(title):
        return None
    runs = Runs().measure(title, FEW_ROUNDS, FEW_FLOWS, "--modes", "steady")
    for algorithm in runs.algorithms():
        if algorithm in JUDGED + BASELINES:
            continue
        for flows in FEW_FLOWS:
            ours, fifo = ("steady", algorithm, flows), ("steady", "fifo", flows)
            report.add(f"{title}: {algorithm}, {shown_flows(flows)}", runs.ns(*ours), "ns", "fifo",
                       runs.ns(*fifo), runs.ratio(ours, fifo))
    return runs


def made_and_forgotten(report):
    """Flows that are attached, send one request, are retired and detached."""
    title = "made and forgotten"
    if not wanted(title):
        return None
    runs = Runs().measure(title, FEW_ROUNDS, FEW_FLOWS, "--modes", "life",
                          "--algorithms", ",".join(JUDGED))
    for algorithm in JUDGED:
        for flows in FEW_FLOWS:
            report.add(f"{title}: {algorithm}, {shown_flows(flows)}",
                       runs.ns("life", algorithm, flows), "ns")
    return runs


def memory(report):
    title = "memory"
    if not wanted(title):
        return
    for result in run(FLOWS[-1], "--algorithms", ",".join(("fifo", *JUDGED)), "--turns", "1"):
        report.add(f"{title}: a flow under {result['algorithm']}, of {FLOWS[-1]:,}",
                   result["flow_bytes"] + result["flow_heap_bytes"], "bytes")
    report.add(f"{title}: of it struct sched_flow", result["flow_bytes"], "bytes")
    report.add(f"{title}: a request, struct sched_item", result["item_bytes"], "bytes")


def main():
    report = Report("sched", "the scheduling library alone: ns per enqueue + dispatch + complete, "
                             "one thread, depth 16, 4 requests queued per flow")
    sections = [section(report) for section in
                (steady_and_churn, random_weights, other_algorithms, made_and_forgotten)]
    memory(report)
    report.note("reference figures were measured before, elsewhere: they are not of this run")
    report.note("list: a bare linked list in the same load: what the memory of the requests costs")
    parts = [runs.processor_part() for runs in sections if runs]
    if parts and min(parts) < SHARED:
        report.note("the processor was shared: schedbench had it for "
                    f"{min(parts):.0%} of the time; what others leave in the caches costs too, "
                    "mostly from 10,000 flows on")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-sched: {error}")
