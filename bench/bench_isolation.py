#!/usr/bin/env python3
"""shares at 2:1 and 8:1 and a victim's 99th percentile beside a crowd, ours and HAProxy's"""
# SPDX-License-Identifier: Apache-2.0

import statistics
import sys

import peers
import road
from lab import ROUNDS, SECONDS, BenchError, Lab, progress, wanted
from report import Report

WEIGHTS = (2, 1)  # of f and g
STEEP = (8, 1)
OURS = ("sfqd", "fsfq", "rw")
FIFO = "haproxy, queue"
CLASS = "haproxy, priority class"
OFFSET = "haproxy, priority offset"
SPLIT = "haproxy, split back ends"
TCP = "haproxy, TCP"
# Shares and percentiles need more requests than a rate does.
SHARE_S = SECONDS + 4
VICTIM_S = SECONDS + 5
VICTIM_ROUNDS = (ROUNDS + 1) // 2
WARM_UP_S = 2.0
# Connections of f and g for which the priority offset is made right, and others that may come.
TUNED_FOR = (64, 256)
OTHER_LOAD = (64, 64)
# The victim is f: open loop, well within its share of 398 requests/s; the crowd is g.
VICTIM_PER_S = 150
CROWD = 256


def part(weights, which):
    return weights[which] / sum(weights)


def offset_ms(array, weights):
    """By how much g's requests must rank later for shares by weight under the load TUNED_FOR.

    By Little's law a flow with n connections and rate x keeps a request for n / x; the offset is
    the difference of what the two flows have to wait for that.
    """
    stay_f, stay_g = (TUNED_FOR[i] / (array.capacity_per_s * part(weights, i)) for i in (0, 1))
    return round((stay_g - stay_f) * 1000)


def start_split(lab, array, weights):
    """HAProxy with a back end per flow, the depth cut in whole numbers as near as they come."""
    port = peers.free_port()
    slots_f = round(road.DEPTH * part(weights, 0))
    return peers.haproxy(lab, peers.haproxy_global() + f"""\
    mode http
    http-reuse always
frontend web
    bind 127.0.0.1:{port}
    use_backend f if {{ hdr(X-Flow) f }}
    default_backend g
backend f
    server one {array.http.address} pool-max-conn 256 maxconn {slots_f}
backend g
    server one {array.http.address} pool-max-conn 256 maxconn {road.DEPTH - slots_f}
""", port, "haproxy-split")


def start_ours(lab, array, weights):
    started = {name: road.spillway(lab, array, name, weights) for name in OURS}
    return {name: child for name, child in started.items() if child}


def start_all(lab, array, weights):
    """Name -> proxy: ours, then every way HAProxy has to treat two flows differently."""
    is_f = "{ hdr(X-Flow) f }"
    rules = {
        FIFO: "",
        CLASS: f"    http-request set-priority-class int(-1) if {is_f}",
        OFFSET: "    http-request set-priority-offset "
                f"int({offset_ms(array, weights)}) unless {is_f}",
    }
    started = start_ours(lab, array, weights)
    if peers.tool("haproxy"):
        for name, rule in rules.items():
            started[name] = peers.haproxy_http(
                lab, array.http, server=f"maxconn {road.DEPTH}", rules=rule,
                name=name.replace(", ", "-").replace(" ", "-"))
        started[SPLIT] = start_split(lab, array, weights)
    return started


def port_of(child, protocol):
    return child.ports[protocol] if hasattr(child, "ports") else child.port


def run_both(lab, report, child, protocol, loads, seconds, warm_up_s):
    """Both flows, or f alone, through one proxy; the summaries of f and g."""
    child.must_live()
    flows = [road.flow(protocol, port_of(child, protocol), name, load)
             for name, load in zip("fg", loads) if load]
    summaries, _ = road.run(lab, flows, seconds, warm_up_s)
    lost = road.failures(summaries)
    if lost:
        report.note(f"{lost} requests through {child.name} had no good reply")
    return {name.split("-")[0]: summary for name, summary in summaries.items()}

# ---------------------------------------------------------------- shares


def share_error(both, weights):
    """How far the worse served flow is off its weight's share, in per cent of that share."""
    rates = [both[name]["throughput_per_s"] for name in "fg"]
    if not sum(rates):
        return None
    return max(abs(rate / sum(rates) / part(weights, i) - 1) for i, rate in enumerate(rates)) * 100


def measure_shares(lab, report, array, proxies, protocol, weights, connections):
    errors = {}
    for name, child in proxies.items():
        progress(f"shares {weights[0]}:{weights[1]}, {protocol}, {connections}: {name}")
        # A run must be a few of the longest stays old before it is steady.
        warm_up_s = WARM_UP_S
        if name == OFFSET:
            warm_up_s += 2.5 * sum(connections) / (array.capacity_per_s * part(weights, 1))
        loads = [f"concurrency={n},connections={n if protocol == 'http' else 4}"
                 for n in connections]
        both = run_both(lab, report, child, protocol, loads, SHARE_S, warm_up_s)
        errors[name] = share_error(both, weights)
    progress("")
    return errors


def add_shares(report, title, errors):
    """A row per algorithm of ours with the goal, then one per way of HAProxy beside the first."""
    for name in OURS:
        report.add(f"{title}: share error, {name}", errors.get(name), "%", goal="value <= 2")
    for name, theirs in errors.items():
        if name not in OURS:
            report.add(f"{title}: share error, {OURS[0]}", errors.get(OURS[0]), "%", name, theirs)


def shares(lab, report, array, proxies, weights, connections, protocol="http"):
    f, g = connections
    title = f"{protocol} {weights[0]}:{weights[1]}, {f} and {g} clients"
    if wanted(title):
        add_shares(report, title, measure_shares(lab, report, array, proxies, protocol, weights,
                                                 connections))

# ---------------------------------------------------------------- the victim


def measure_victim(lab, report, proxies, protocol, repeated):
    """Name -> summaries of f and g with the crowd there, one per round.

    Only what the goal compares is repeated, in turns: one pause of the machine makes a
    percentile.
    """
    rounds = {name: [] for name in proxies}
    crowd = f"concurrency={CROWD},connections={CROWD if protocol == 'http' else 4}"
    for number in range(VICTIM_ROUNDS):
        for name, child in proxies.items():
            if number == 0 or name in repeated:
                progress(f"victim, {protocol}, round {number + 1} of {VICTIM_ROUNDS}: {name}")
                rounds[name].append(run_both(lab, report, child, protocol,
                                             (f"rate={VICTIM_PER_S}/s", crowd), VICTIM_S,
                                             WARM_UP_S))
    progress("")
    return rounds


def p99s_ms(results, name):
    return [both["f"]["latency"]["p99_ms"] for both in results.get(name, [])]


def totals(results, name):
    return [sum(one["throughput_per_s"] for one in both.values()) for both in results.get(name, [])]


def add_medians(report, title, unit, ours, peer, theirs, goal=None):
    """A row of two lists of rounds; the ratio is the median of the rounds' ratios."""
    ratios = [a / b for a, b in zip(ours, theirs) if b]
    report.add(title, statistics.median(ours) if ours else None, unit, peer if theirs else None,
               statistics.median(theirs) if theirs else None,
               statistics.median(ratios) if ratios else None, goal)


def victim(lab, report, proxies, protocol, fifo):
    """f's 99th percentile beside the crowd; `fifo` is the peer that the goal is about."""
    title = f"{protocol} victim beside {CROWD} clients"
    if not wanted(title):
        return
    ours = proxies.get(OURS[0])
    if ours:
        progress(f"victim alone, {protocol}")
        alone = [run_both(lab, report, ours, protocol, (f"rate={VICTIM_PER_S}/s", None), VICTIM_S,
                          WARM_UP_S) for _ in range(VICTIM_ROUNDS)]
        report.add(f"{protocol} victim alone: p99, {OURS[0]}",
                   statistics.median(p99s_ms({"alone": alone}, "alone")), "ms")
    results = measure_victim(lab, report, proxies, protocol, (*OURS, fifo))
    for name in OURS:
        add_medians(report, f"{title}: p99, {name}", "ms", p99s_ms(results, name), fifo,
                    p99s_ms(results, fifo), "ratio <= 0.5")
    for name in results:
        if name not in (*OURS, fifo):
            add_medians(report, f"{title}: p99, {OURS[0]}", "ms", p99s_ms(results, OURS[0])[:1],
                        name, p99s_ms(results, name))
    for name in OURS:
        add_medians(report, f"{title}: both flows' rate, {name}", "req/s", totals(results, name),
                    fifo, totals(results, fifo))

# ---------------------------------------------------------------- all of it


def http(lab, report, array):
    proxies = start_all(lab, array, WEIGHTS)
    shares(lab, report, array, proxies, WEIGHTS, TUNED_FOR)
    shares(lab, report, array, proxies, WEIGHTS, OTHER_LOAD)
    victim(lab, report, proxies, "http", FIFO)
    for child in proxies.values():
        lab.stop(child)
    proxies = start_all(lab, array, STEEP)
    shares(lab, report, array, proxies, STEEP, TUNED_FOR)
    for child in proxies.values():
        lab.stop(child)


def nfs(lab, report, array):
    proxies = start_ours(lab, array, WEIGHTS)
    if peers.tool("haproxy"):
        proxies[TCP] = peers.haproxy_tcp(lab, array.nfs)
    shares(lab, report, array, proxies, WEIGHTS, TUNED_FOR, "nfs")
    victim(lab, report, proxies, "nfs", TCP)


def main():
    report = Report("isolation", f"flows f and g at a service of {road.SLOTS} slots x "
                                 f"{road.SERVICE_MS} ms (exponential), {road.DEPTH} requests let "
                                 "through at a time")
    with Lab() as lab:
        array = road.Array(lab)
        http(lab, report, array)
        nfs(lab, report, array)
        report.note("share error: of the worse served flow, in % of the share its weight gives it; "
                    "both flows are closed loops")
        report.note(f"{OFFSET}: g's requests rank {offset_ms(array, WEIGHTS)} ms later at 2:1, "
                    f"{offset_ms(array, STEEP)} ms at 8:1, right for {TUNED_FOR[0]} and "
                    f"{TUNED_FOR[1]} clients")
        report.note(f"victim: f at {VICTIM_PER_S} requests/s, open loop, weights "
                    f"{WEIGHTS[0]}:{WEIGHTS[1]}; latency counts from when a request "
                    "was meant to be sent")
        report.note(f"victim alone, and beside the crowd: ours, {FIFO} and {TCP}: median of "
                    f"{VICTIM_ROUNDS} rounds of {VICTIM_S:g} s; the other peers: one round")
        report.note(f"{TCP}: it can't see calls, so it holds none back; each flow has connections "
                    "of its own")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-isolation: {error}")
