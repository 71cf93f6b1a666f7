#!/usr/bin/env python3
"""the paper's ON/OFF run through the proxy, HTTP and NFS, beside the simulator's"""
# SPDX-License-Identifier: Apache-2.0
#
# Jin, Chase, Kaur, "Interposed Proportional Sharing for a Storage Service Utility" (SIGMETRICS
# 2004): f asks for 480 requests/s all the time, g for 120 requests/s in its ON phases, the array
# does 503 a second. All times but the service's are scaled down together.

import csv
import json
import statistics
import subprocess
import sys

import road
from lab import ROUNDS, BenchError, Lab, progress, wanted
from report import Report

ALGORITHMS = ("fsfq", "rw", "edf")
PROTOCOLS = ("http", "nfs")
WEIGHTS = (2, 1)
PHASE_S = 4  # 10 in the paper
PHASES = 6
RUN_S = PHASES * PHASE_S
TARGETS = ("400ms", "4ms")  # of EDF; 1 s and 10 ms in the paper
RATES = {"f": "rate=480/s", "g": f"rate=120/s,on={PHASE_S}s,off={PHASE_S}s"}
# The array saturates at 503 requests/s. The simulator's disks have a queue each, spillorigin's
# slots one for all; with the shortest queue chosen the two are nearly the same service.
SERVICE_MS = 7.95
REAL_ROUNDS = (ROUNDS + 1) // 2
SEEDS = 40 * REAL_ROUNDS
DRAIN_S = 20
SIMULATOR = "simulator"
FIELDS = ("f_on", "f_off", "f_ms", "g_ms")


class Outcome:
    """What one run showed: f's rate while g is on and while it is off, mean response times."""

    def __init__(self, f_on, f_off, f_ms, g_ms):
        self.f_on, self.f_off, self.f_ms, self.g_ms = f_on, f_off, f_ms, g_ms


def phases(rates):
    """The means of a rate per second over g's ON phases and over its OFF phases."""
    on = [rate for second, rate in enumerate(rates) if second // PHASE_S % 2 == 0]
    off = [rate for second, rate in enumerate(rates) if second // PHASE_S % 2 == 1]
    return statistics.mean(on), statistics.mean(off)


def simulate(lab, algorithm, seed):
    """One run in virtual time; what waits at its end is served and counted, as with spillload."""
    series, summary = lab.folder / "sim.csv", lab.folder / "sim.json"
    flows = [word for name, weight, target in zip("fg", WEIGHTS, TARGETS) for word in (
        "--flow", f"name={name},weight={weight},deadline={target},stop={RUN_S}s,{RATES[name]}")]
    subprocess.run(
        [road.need("spillsim"), "array", "--algorithm", algorithm, "--depth", str(road.DEPTH),
         "--disks", str(road.SLOTS), "--service", f"{SERVICE_MS}ms", "--spread", "shortest",
         "--seed", str(seed), "--duration", f"{RUN_S + DRAIN_S}s", *flows, "--csv", series,
         "--json", summary], check=True, stdout=subprocess.DEVNULL, timeout=60)
    with open(series, newline="", encoding="ascii") as file:
        rates = [float(row["f.completed_per_s"]) for row in csv.DictReader(file)][:RUN_S]
    f, g = json.loads(summary.read_text())["flows"]
    return Outcome(*phases(rates), f["response"]["mean_ms"], g["response"]["mean_ms"])


def middle(runs):
    """The median of each figure."""
    return Outcome(*(statistics.median(getattr(run, field) for run in runs)
                     for field in FIELDS))


def spread(runs):
    """How much figures like the real ones, medians of REAL_ROUNDS, differ by their draws alone."""
    medians = [middle(runs[first:first + REAL_ROUNDS])
               for first in range(0, len(runs), REAL_ROUNDS)]
    return Outcome(*(statistics.stdev(getattr(one, field) for one in medians) for field in FIELDS))


def measure(lab, report, array, algorithm, seed):
    """Both protocols at the same time, each with slots of its own; protocol -> Outcome."""
    proxy = road.spillway(lab, array, algorithm, WEIGHTS,
                          TARGETS if algorithm == "edf" else None)
    if not proxy:
        return {}
    # An open loop that waited for connections of its own would not be one.
    enough = {"http": "concurrency=4000,connections=4000", "nfs": "concurrency=4000,connections=4"}
    flows = [road.flow(protocol, proxy.ports[protocol], name, f"{RATES[name]},{enough[protocol]}")
             for protocol in PROTOCOLS for name in "fg"]
    summaries, lines = road.run(lab, flows, RUN_S, seed=seed)
    lab.stop(proxy)
    lost = road.failures(summaries)
    if lost:
        report.note(f"{algorithm}: {lost} requests had no good reply")
    outcomes = {}
    for protocol in PROTOCOLS:
        f, g = f"f-{protocol}", f"g-{protocol}"
        rates = [one["rate"] for line in lines for one in line["flows"] if one["name"] == f]
        if len(rates) < RUN_S:
            raise BenchError(f"spillload showed {len(rates)} seconds of {RUN_S}")
        outcomes[protocol] = Outcome(*phases(rates), summaries[f]["latency"]["mean_ms"],
                                     summaries[g]["latency"]["mean_ms"])
    return outcomes


def add_outcome(report, title, real, sim):
    for what, unit, field in (("f while g is on", "req/s", "f_on"),
                              ("f while g is off", "req/s", "f_off"),
                              ("f's mean response", "ms", "f_ms"),
                              ("g's mean response", "ms", "g_ms")):
        ours, theirs = real and getattr(real, field), getattr(sim, field)
        report.add(f"{title}: {what}", ours, unit, SIMULATOR, theirs, ours and ours / theirs)


def off_by(real, sim, algorithms, fields):
    """The largest difference of these fields over the algorithms, in % of the simulator's."""
    return max(abs(getattr(real[name], field) / getattr(sim[name], field) - 1) * 100
               for name in algorithms for field in fields)


def deviations(real, sim, spreads):
    """The largest difference of a response that follows f's queue, by how much the simulator's own
    differ."""
    followers = [(name, "f_ms") for name in real] + [("edf", "g_ms")]
    return max(abs(getattr(real[name], field) - getattr(sim[name], field))
               / getattr(spreads[name], field) for name, field in followers)


def add_agreement(report, protocol, real, sim, spreads):
    """How far the protocol's runs are from the simulator's, and whether they tell the same."""
    whole = len(real) == len(ALGORITHMS)
    report.add(f"{protocol}: f's rates off the simulator's by at most",
               off_by(real, sim, ALGORITHMS, ("f_on", "f_off")) if whole else None, "%",
               goal="value <= 10")
    report.add(f"{protocol}: g's responses, fsfq and rw, off the simulator's by at most",
               off_by(real, sim, ("fsfq", "rw"), ("g_ms",)) if whole else None, "%",
               goal="value <= 20")
    # f's queue grows all the time and is as long as the draws make it.
    report.add(f"{protocol}: f's responses, and g's under edf, off by at most",
               deviations(real, sim, spreads) if whole else None, "std dev", goal="value <= 4")
    # RW and FSFQ keep g's response low; EDF does only until f's oldest request is due.
    for slow, fast, goal in (("edf", "fsfq", "value >= 5"), ("edf", "rw", "value >= 5"),
                             ("fsfq", "rw", "value >= 0.9")):
        ours = real[slow].g_ms / real[fast].g_ms if whole else None
        theirs = sim[slow].g_ms / sim[fast].g_ms
        report.add(f"{protocol}: g's response under {slow} by that under {fast}", ours, "ratio",
                   SIMULATOR, theirs, ours and ours / theirs, goal)


def main():
    report = Report("onoff", f"f at 480 requests/s, g at 120 requests/s ON and OFF every {PHASE_S} "
                             f"s, weights 2:1, {RUN_S} s; {road.SLOTS} slots x {SERVICE_MS} ms "
                             f"(exponential), depth {road.DEPTH}")
    algorithms = [name for name in ALGORITHMS if wanted(name)]
    with Lab() as lab:
        array = road.Array(lab, SERVICE_MS)
        sim, spreads = {}, {}
        for name in algorithms:
            progress(f"{name}: {SEEDS} simulated runs")
            runs = [simulate(lab, name, seed) for seed in range(1, SEEDS + 1)]
            sim[name], spreads[name] = middle(runs), spread(runs)
        rounds = {name: [] for name in algorithms}
        for number in range(1, REAL_ROUNDS + 1):
            for name in algorithms:
                progress(f"round {number} of {REAL_ROUNDS}: {name}, {RUN_S} s")
                rounds[name].append(measure(lab, report, array, name, number))
        progress("")
        real = {name: {protocol: middle([one[protocol] for one in runs])
                       for protocol in PROTOCOLS if runs[0]} for name, runs in rounds.items()}
        for protocol in PROTOCOLS:
            for name in algorithms:
                add_outcome(report, f"{protocol} {name}", real[name].get(protocol), sim[name])
        for protocol in PROTOCOLS if algorithms == list(ALGORITHMS) else ():
            add_agreement(report, protocol, {name: outcomes[protocol] for name, outcomes in
                                             real.items() if protocol in outcomes}, sim, spreads)
        report.note(f"real: median of {REAL_ROUNDS} runs; simulated: median of {SEEDS} seeds, and "
                    f"the standard deviation of medians of {REAL_ROUNDS}; "
                    f"EDF's targets are {TARGETS[0]} for f and {TARGETS[1]} for g")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-onoff: {error}")
