#!/usr/bin/env python3
"""NFSv3 over TCP beside HAProxy in TCP mode: processor time per call and per MiB, added latency"""
# SPDX-License-Identifier: Apache-2.0

import sys

import ganesha
import peers
from lab import (BenchError, Lab, compare, count_system_calls, disturbances, median, paired_ratio,
                 program, progress, run_load, wanted)
from report import Report

TUNED = ganesha.TUNED
DEFAULT = "haproxy-tcp, default buffers"
DEFAULT_BUFFER_BYTES = 16384
# Calls outstanding in the load of small calls: at this depth the scheduler passes all of them, in
# its order; at half of it, half of them wait in it.
ALL_CALLS = 4 * 32
SMALL = ("--kind", "read", "--bytes", 4096, "--call-bytes", 200, "--connections", 4, "--depth", 32)
LARGE_READ = ("--kind", "read", "--bytes", 1 << 20, "--connections", 4, "--depth", 4)
LARGE_WRITE = ("--kind", "write", "--bytes", 1 << 20, "--connections", 4, "--depth", 4)
ALONE = ("--kind", "read", "--bytes", 4096, "--connections", 1, "--depth", 1)


def load(proxy, arguments, seconds=None):
    return run_load("rpcload", "--target", proxy.address, "--watch", proxy.pid, *arguments,
                    seconds=seconds)


def start_all(lab, backend):
    all_of_them = {
        "spillway": peers.spillway_nfs(lab, backend, depth=ALL_CALLS),
        TUNED: peers.haproxy_tcp(lab, backend),
        DEFAULT: peers.haproxy_tcp(lab, backend, DEFAULT_BUFFER_BYTES, "haproxy-tcp-default")}
    return {name: child for name, child in all_of_them.items() if child}


def add_row(report, samples, name, field, unit, peer, goal=None):
    ours = samples.get("spillway")
    theirs = samples.get(peer)
    report.add(name, ours and median(ours, field), unit, peer if theirs else None,
               theirs and median(theirs, field),
               ours and theirs and paired_ratio(ours, theirs, field), goal)


def small_calls(report, proxies):
    title = "4 KiB reads, 4 x 32 deep"
    if not wanted(title):
        return
    samples = compare(proxies, lambda proxy: load(proxy, SMALL))
    report.notes.extend(disturbances(title, samples))
    add_row(report, samples, f"{title}: CPU per call", "cpu_us", "us", TUNED, "ratio <= 1.1")
    add_row(report, samples, f"{title}: CPU per call, other settings", "cpu_us", "us", DEFAULT)
    add_row(report, samples, f"{title}: user CPU per call", "user_us", "us", TUNED)
    add_row(report, samples, f"{title}: rate", "rate", "calls/s", TUNED)
    add_row(report, samples, f"{title}: 99th percentile", "p99_us", "us", TUNED)


def waiting_calls(report, lab, backend, proxies):
    """Half of the calls wait in the scheduler: fewer are on their way, so fewer leave together."""
    title = "4 KiB reads, 4 x 32 deep, half of them waiting"
    if not wanted(title) or "spillway" not in proxies:
        return
    half = ALL_CALLS // 2
    pair = {"spillway": peers.spillway_nfs(lab, backend, depth=half, name="half"),
            "FIFO, same depth": peers.spillway_nfs(lab, backend, "fifo", half, "half-fifo"),
            "spillway, none waiting": proxies["spillway"]}
    samples = compare(pair, lambda proxy: load(proxy, SMALL))
    for peer in list(pair)[1:]:
        add_row(report, samples, f"{title}: CPU per call", "cpu_us", "us", peer)
    for name in list(pair)[:2]:
        lab.stop(pair[name])


def large(report, proxies, title, arguments, goal):
    if not wanted(title):
        return
    samples = compare(proxies, lambda proxy: load(proxy, arguments))
    report.notes.extend(disturbances(title, samples))
    add_row(report, samples, f"{title}: CPU per MiB", "megabyte_us", "us", TUNED, goal)
    add_row(report, samples, f"{title}: CPU per MiB, other settings", "megabyte_us", "us", DEFAULT)
    add_row(report, samples, f"{title}: rate", "rate", "MiB/s", TUNED)


def added_latency(report, backend, proxies):
    """One call at a time: what the way through a proxy adds to the way past it."""
    title = "one call at a time, 4 KiB"
    if not wanted(title):
        return
    samples = compare({"direct": backend, **proxies}, lambda proxy: load(proxy, ALONE))
    for name in list(samples):
        for sample, direct in zip(samples[name], samples["direct"]):
            sample.added_us = sample.p50_us - direct.p50_us
    direct = median(samples["direct"], "p50_us")
    report.note(f"{title}: {direct:.1f} us at the median without a proxy (client and server share "
                "a core)")
    add_row(report, samples, f"{title}: added median latency", "added_us", "us", TUNED,
            "value <= 30")
    add_row(report, samples, f"{title}: median latency", "p50_us", "us", TUNED)


def system_calls(report, proxies):
    title = "system calls per call, 4 x 32 deep"
    if not wanted(title):
        return
    counts = {}
    counted_by = ""
    for name in ("spillway", TUNED):
        if name in proxies:
            progress(f"counting system calls: {name}")
            counts[name], counted_by = count_system_calls(
                proxies[name], lambda proxy: load(proxy, SMALL, seconds=1.5))
    progress("")
    ours, theirs = counts.get("spillway"), counts.get(TUNED)
    report.add(f"{title} ({counted_by})", ours, "calls", TUNED if theirs else None, theirs,
               ours and theirs and ours / theirs)


def real_server(report):
    """Against NFS-Ganesha, for information."""
    title = "Ganesha"
    if not wanted(title):
        return
    reason = ganesha.missing()
    if reason:
        report.note(f"{title}: left out: {reason}")
        return
    progress(f"{title}: in its namespace")
    try:
        result = ganesha.rows()
    except BenchError as error:
        report.note(f"{title}: {error}")
        return
    for row in result["rows"]:
        report.add(**row)
    report.notes.extend(result["notes"])
    progress("")


def main():
    report = Report("nfs", "NFSv3 over TCP through one thread on a core of its own; stub server "
                           "and load on the other; scheduling on, logs off")
    with Lab() as lab:
        backend = lab.server("rpcstub")
        proxies = start_all(lab, backend)
        if not program("spillway"):
            report.note("spillway is not built: the peers alone were measured")
        small_calls(report, proxies)
        waiting_calls(report, lab, backend, proxies)
        large(report, proxies, "1 MiB reads", LARGE_READ, "ratio <= 1.1")
        large(report, proxies, "1 MiB writes", LARGE_WRITE, None)
        added_latency(report, backend, proxies)
        system_calls(report, proxies)
    real_server(report)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-nfs: {error}")
