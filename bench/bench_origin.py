#!/usr/bin/env python3
"""spillorigin by itself: that it never hides a proxy's cost, HTTP and NFS, beside servers that do nothing else"""
# SPDX-License-Identifier: Apache-2.0

import os
import re
import subprocess
import sys
import time

from lab import (LOAD_CORE, PROXY_CORE, SECONDS, BenchError, Lab, compare, count_system_calls,
                 disturbances, free_port, median, paired_ratio, pin, program, progress, run_load,
                 tool, wanted)
from peers import _only_child, _user_is_not_root
from report import Report

BODY = "x" * 128
# 16 requests in one write: what is left of a request's cost when the network has little part in it.
PIPELINE = """\
local batch
init = function(args)
    local request = wrk.format("GET", "/")
    batch = string.rep(request, 16)
end
request = function() return batch end
"""
NGINX = """\
daemon off;
{user}worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ return 200 "{body}"; }}
    }}
}}
"""
ONE_BY_ONE = ("--connections", 64, "--depth", 1)
DEEP = ("--connections", 4, "--depth", 32)


# ------------------------------------------------------------------ servers, on the core under test


def need(name):
    path = program(name)
    if not path:
        raise BenchError(f"{name} is missing: run make first")
    return path


def origin(lab):
    child = lab.start("spillorigin", [need("spillorigin"), "--http", "127.0.0.1:0", "--nfs",
                                      "127.0.0.1:0", "--file", "data=16MiB"], PROXY_CORE)
    line = child.wait_for_line("listening ")
    child.wait_for_line("ready")
    ports = {word.split("=")[0]: int(word.rsplit(":", 1)[1]) for word in line.split()}
    child.port, child.nfs_port = ports["http"], ports["nfs"]
    return child


def stub(lab, name):
    """One of our bench servers, which do nothing but answer."""
    child = lab.start(name, [need(name)], PROXY_CORE)
    child.port = child.nfs_port = int(child.wait_for_line("listening ").rsplit(":", 1)[1])
    return child


def nginx(lab):
    path = tool("nginx")
    if not path:
        return None
    port = free_port()
    folder = lab.folder / f"nginx-{port}"
    folder.mkdir()
    user = "" if _user_is_not_root() else "user root;\n"
    config = lab.write(f"nginx-{port}.conf",
                       NGINX.format(user=user, folder=folder, port=port, body=BODY))
    child = lab.start("nginx", [path, "-c", config, "-e", f"{folder}/start.log"], PROXY_CORE)
    child.wait_for_port(port)
    child.pid = _only_child(child)
    return child


# ------------------------------------------------------------------ loads, on the other core


def http_load(child, seconds=None):
    return run_load("httpload", "--target", child.address, "--connections", 64, "--watch",
                    child.pid, seconds=seconds)


def nfs_load(kind, shape):
    def load(child, seconds=None):
        mount = (("--mount", f"127.0.0.1:{child.nfs_port}") if child.name == "spillorigin" else ())
        return run_load("rpcload", "--target", f"127.0.0.1:{child.nfs_port}", *mount, "--kind",
                        kind, *shape, "--watch", child.pid, seconds=seconds)
    return load


def spent(pid):
    """Processor time of a process in microseconds: exactly, and by user and system ticks."""
    tick_us = 1e6 / os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        exact = int(file.read().split()[0]) / 1e3
    return {"cpu_us": exact, "user_us": int(fields[11]) * tick_us,
            "system_us": int(fields[12]) * tick_us}


def wrk_load(script):
    """A load in the shape of our own tools' results, by wrk."""
    def load(child):
        command = [tool("wrk"), "-t1", "-c64", f"-d{max(1, round(SECONDS))}s", "--latency"]
        command += ["-s", script] if script else []
        before, start = spent(child.pid), time.monotonic()
        done = subprocess.run([*command, f"http://{child.address}/128"], capture_output=True,
                              text=True, check=False, timeout=SECONDS + 60,
                              preexec_fn=lambda: pin(LOAD_CORE))
        seconds, after = time.monotonic() - start, spent(child.pid)
        found = re.search(r"(\d+) requests in", done.stdout)
        rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
        if done.returncode != 0 or not found or not rate:
            raise BenchError(f"wrk: status {done.returncode}\n{done.stdout}{done.stderr}")
        watched = {key: after[key] - before[key] for key in before}
        errors = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
        return {"requests": int(found.group(1)), "requests_per_s": float(rate.group(1)),
                "p50_us": 0, "p99_us": 0, "bytes": 0, "seconds": seconds,
                "errors": int(errors.group(1)) if errors else 0, "watched": [watched],
                "cores": [watched["cpu_us"] / (seconds * 1e6)] * (PROXY_CORE + 1)}
    return load


# ------------------------------------------------------------------ rows


def add_rows(report, title, servers, load, rate_goal=None, cpu_goal=None):
    """Rate, and processor time per request, beside each peer; the goal is on the first of them."""
    if not wanted(title):
        return
    samples = compare(servers, load)
    report.notes.extend(disturbances(title, samples))
    ours = samples["spillorigin"]
    peers = [name for name in samples if name != "spillorigin"]
    for field, unit, what, goal in (("rate", "req/s", "rate", rate_goal),
                                    ("cpu_us", "us", "CPU per request", cpu_goal)):
        for peer in peers or [None]:
            theirs = samples.get(peer)
            report.add(f"{title}: {what}", median(ours, field), unit, peer,
                       theirs and median(theirs, field),
                       theirs and paired_ratio(ours, theirs, field), goal)
            goal = None
    cpu = median(ours, "cpu_us")
    report.note(f"{title}: {1e6 / cpu:,.0f} req/s are in one core by its processor time; "
                f"{median(ours, 'user_us') / cpu:.0%} of that time is its own, the rest the "
                "kernel's, which on loopback takes a packet to its receiver within send()")


def system_calls(report, servers, title, load):
    if not wanted(title):
        return
    child = servers["spillorigin"]
    progress(f"counting system calls: {title}")
    count, counted_by = count_system_calls(child, load)
    progress("")
    report.add(f"{title} ({counted_by})", count, "calls", None, None, None)


def main():
    report = Report("origin", "spillorigin on a core of its own, without service time; load on the "
                              "other core")
    with Lab() as lab:
        ours = origin(lab)
        web = {"spillorigin": ours, "httpserver": stub(lab, "httpserver"), "nginx": nginx(lab)}
        web = {name: child for name, child in web.items() if child}
        nas = {"spillorigin": ours, "rpcstub": stub(lab, "rpcstub")}
        add_rows(report, "HTTP 128 B, 64 connections", web, http_load, cpu_goal="ratio <= 1.15")
        if tool("wrk"):
            add_rows(report, "HTTP 128 B, 64 connections of wrk", web, wrk_load(None))
            script = lab.write("pipeline.lua", PIPELINE)
            add_rows(report, "HTTP 128 B, 64 connections of wrk, 16 pipelined", web,
                     wrk_load(script), rate_goal="value >= 200000")
        else:
            report.note("wrk is not installed: nothing was pipelined")
        add_rows(report, "NFS GETATTR, 4 x 32 deep", nas, nfs_load("getattr", DEEP),
                 rate_goal="value >= 200000")
        add_rows(report, "NFS READ 4 KiB, 4 x 32 deep", nas, nfs_load("read", DEEP),
                 rate_goal="value >= 200000")
        add_rows(report, "NFS GETATTR, 64 connections", nas, nfs_load("getattr", ONE_BY_ONE),
                 cpu_goal="ratio <= 1.15")
        system_calls(report, web, "HTTP: system calls per request",
                     lambda child: http_load(child, seconds=1.5))
        system_calls(report, nas, "NFS: system calls per call, 4 x 32 deep",
                     lambda child: nfs_load("getattr", DEEP)(child, seconds=1.5))
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-origin: {error}")
