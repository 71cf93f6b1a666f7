#!/usr/bin/env python3
"""HTTP beside HAProxy and nginx: processor time, rate, latency and system calls per request"""
# SPDX-License-Identifier: Apache-2.0

import resource
import socket
import sys

import peers
from lab import (BenchError, Lab, better, compare, count_system_calls, disturbances, median,
                 paired_ratio, program, progress, resident_bytes, run_load, wanted)
from report import Report

FLOWS = 4
IDLE_FEW = 500
IDLE_MANY = 6500


def load(proxy, *arguments, seconds=None):
    return run_load("httpload", "--target", proxy.address, "--flows", FLOWS, "--watch", proxy.pid,
                    *arguments, seconds=seconds)


def start_all(lab, backend):
    """Name -> running proxy, of those that are there; ours first."""
    all_of_them = {"spillway": peers.spillway_http(lab, backend),
                   "haproxy": peers.haproxy_http(lab, backend),
                   "nginx": peers.nginx_http(lab, backend)}
    return {name: child for name, child in all_of_them.items() if child}


def add_row(report, samples, name, field, unit, peer, ratio_goal=None):
    """One row: our median beside a peer's, with the median of the rounds' ratios."""
    ours = samples.get("spillway")
    peers_samples = samples.get(peer)
    report.add(name, ours and median(ours, field), unit, peer if peers_samples else None,
               peers_samples and median(peers_samples, field),
               ours and peers_samples and paired_ratio(ours, peers_samples, field), ratio_goal)


def peers_in(samples):
    return [name for name in samples if name != "spillway"]


def small_requests(report, proxies):
    """128 B over 64 kept connections: the row that matters most."""
    title = "128 B keep-alive"
    if not wanted(title):
        return
    samples = compare(proxies, load)
    report.notes.extend(disturbances(title, samples))
    names = peers_in(samples)
    if not names:
        names = list(samples)
    best = better(samples, names, "cpu_us")
    add_row(report, samples, f"{title}: CPU per request", "cpu_us", "us", best, "ratio <= 0.95")
    for name in names:
        if name != best:
            add_row(report, samples, f"{title}: CPU per request, other peer", "cpu_us", "us", name)
    add_row(report, samples, f"{title}: user CPU per request", "user_us", "us",
            better(samples, names, "user_us"))
    add_row(report, samples, f"{title}: rate", "rate", "req/s",
            better(samples, names, "rate", highest=True), "ratio >= 1.10")
    add_row(report, samples, f"{title}: median latency", "p50_us", "us",
            better(samples, names, "p50_us"))
    add_row(report, samples, f"{title}: 99th percentile", "p99_us", "us",
            better(samples, names, "p99_us"), "ratio <= 0.90")


def system_calls(report, proxies):
    title = "system calls per request"
    if not wanted(title):
        return
    for size, goal in ((128, "value <= 4.3"), (65536, "value <= 6")):
        counts = {}
        for name, child in proxies.items():
            progress(f"counting system calls: {name}")
            counts[name], counted_by = count_system_calls(
                child, lambda proxy, size=size: load(proxy, "--bytes", size, seconds=1.5))
            if counts[name] is None:
                report.note(f"{title}: {counted_by}")
        known = [name for name in peers_in(counts) if counts[name]]
        best = min(known, key=counts.get) if known else None
        ours = counts.get("spillway")
        report.add(f"{title}, {size} B ({counted_by})", ours, "calls", best,
                   best and counts[best], ours and best and ours / counts[best], goal)
    progress("")


def against_nginx(report, proxies, title, arguments, goal):
    """A row whose measure is nginx, HAProxy beside it for information."""
    if not wanted(title):
        return
    samples = compare(proxies, lambda proxy: load(proxy, *arguments))
    report.notes.extend(disturbances(title, samples))
    add_row(report, samples, f"{title}: CPU per request", "cpu_us", "us", "nginx", goal)
    add_row(report, samples, f"{title}: CPU per request, other peer", "cpu_us", "us", "haproxy")


def scheduling_on_off(report, lab, backend, proxies):
    """What the scheduler itself costs: the same depth served first come, first served."""
    title = "scheduling on / off, 128 B"
    if not wanted(title) or "spillway" not in proxies:
        return
    pair = {"spillway": proxies["spillway"],
            "FIFO, same depth": peers.spillway_http(lab, backend, "fifo", name="fifo"),
            "FIFO, no waiting": peers.spillway_http(lab, backend, "fifo", depth=1024,
                                                    name="fifo-open")}
    samples = compare(pair, load)
    report.notes.extend(disturbances(title, samples))
    add_row(report, samples, f"{title}: CPU per request", "cpu_us", "us", "FIFO, same depth",
            "ratio <= 1.02")
    add_row(report, samples, f"{title}: CPU per request, nothing queued", "cpu_us", "us",
            "FIFO, no waiting")
    for name in list(pair)[1:]:
        lab.stop(pair[name])


def idle_connection_bytes(proxy):
    """Memory per connection that has had one answer and now waits for its next request."""
    connections = []
    request = b"GET /128 HTTP/1.1\r\nHost: bench.example\r\nX-Flow: f0\r\n\r\n"
    at = []
    try:
        for number in range(1, IDLE_MANY + 1):
            connection = socket.create_connection(("127.0.0.1", proxy.port), 5)
            connections.append(connection)
            connection.sendall(request)
            if b" 200 " not in connection.recv(4096):
                raise BenchError(f"{proxy.name}: no 200 on idle connection {number}")
            if number in (IDLE_FEW, IDLE_MANY):
                at.append(resident_bytes(proxy.pid))
    finally:
        for connection in connections:
            connection.close()
    return (at[1] - at[0]) / (IDLE_MANY - IDLE_FEW)


def idle_memory(report, lab, backend):
    """Fresh processes: what earlier loads left behind would hide an idle connection's memory."""
    title = "memory per idle connection"
    if not wanted(title):
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE_MANY + 100:
        report.note(f"{title}: needs {IDLE_MANY + 100} open files, the limit is {hard}")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE_MANY + 100), hard))
    fresh = start_all(lab, backend)
    used = {}
    for name, child in fresh.items():
        progress(f"{title}: {name}")
        used[name] = idle_connection_bytes(child)
        lab.stop(child)
    progress("")
    ours = used.get("spillway")
    for peer, goal in (("haproxy", "ratio <= 1.0"), ("nginx", None)):
        if peer in used:
            report.add(title, ours, "bytes", peer, used[peer],
                       ours is not None and ours / used[peer] or None, goal)


def main():
    report = Report("http", "HTTP/1.1 through one thread on a core of its own; "
                            "backend and load on the other; scheduling on, logs off")
    with Lab() as lab:
        backend = lab.server("httpserver")
        proxies = start_all(lab, backend)
        if not program("spillway"):
            report.note("spillway is not built: the peers alone were measured")
        small_requests(report, proxies)
        system_calls(report, proxies)
        against_nginx(report, proxies, "64 KiB keep-alive", ("--bytes", 65536), "ratio <= 0.90")
        against_nginx(report, proxies, "connection per request", ("--close",), "ratio <= 1.05")
        scheduling_on_off(report, lab, backend, proxies)
        idle_memory(report, lab, backend)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-http: {error}")
