#!/usr/bin/env python3
"""the generator beside wrk and h2load: requests per second and processor time per request"""
# SPDX-License-Identifier: Apache-2.0

import json
import os
import re
import subprocess
import sys

from lab import (BIN, LOAD_CORE, PROXY_CORE, ROUNDS, SECONDS, BenchError, Lab, free_port, median,
                 paired_ratio, pin, program, progress, tool, wanted)
from report import Report

CLIENTS = 64
STREAMS = 16
SMALL_BYTES = 128
LARGE_BYTES = 65536

NGINX = """\
daemon off;
master_process off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    open_file_cache max=100;
    sendfile on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    http2_max_concurrent_streams 1000;
    server {{
        listen 127.0.0.1:{http};
        listen 127.0.0.1:{https} ssl;
        listen 127.0.0.1:{h2} ssl http2;
        listen 127.0.0.1:{h2c} http2;
        root {folder};
    }}
}}
"""


class Sample:
    """One run of a generator: what it did and what it spent."""

    def __init__(self, requests, seconds, usage):
        self.rate = requests / seconds
        self.cpu_us = (usage.ru_utime + usage.ru_stime) * 1e6 / requests
        self.user_us = usage.ru_utime * 1e6 / requests


def run(command):
    """Runs a generator on its core to the end; returns its output and what it used."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               preexec_fn=lambda: pin(PROXY_CORE))
    try:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise BenchError(f"{' '.join(map(str, command))}: status {process.returncode}\n{output}")
    return output, usage


def found(pattern, output, name):
    match = re.search(pattern, output)
    if not match:
        raise BenchError(f"{name} printed no {pattern!r}:\n{output}")
    return float(match.group(1))


class Generators:
    """The generators as functions of (protocol, port, path), each for SECONDS."""

    def __init__(self, lab):
        self.summary = lab.folder / "summary.json"

    def spillload(self, protocol, port, path):
        streams = f",streams={STREAMS}" if protocol in ("h2", "h2c") else ""
        trust = ",tls-verify=no" if protocol in ("https", "h2") else ""
        output, usage = run([BIN / "spillload", "--duration", f"{round(SECONDS * 1000)}ms",
                             "--drain", "1s", "--json", self.summary, "--flow",
                             f"name=load,proto={protocol},target=127.0.0.1:{port},path={path},"
                             f"concurrency={CLIENTS}{streams}{trust}"])
        flow = json.loads(self.summary.read_text())["flows"][0]
        outcomes = flow["outcomes"]
        if outcomes["ok"] != sum(outcomes.values()):
            raise BenchError(f"spillload had errors: {outcomes}\n{output}")
        return Sample(outcomes["ok"], SECONDS, usage)

    def wrk(self, protocol, port, path):
        output, usage = run([tool("wrk"), "-t1", f"-c{CLIENTS}", f"-d{max(1, round(SECONDS))}s",
                             f"{protocol}://127.0.0.1:{port}{path}"])
        if "Socket errors" in output or "Non-2xx" in output:
            raise BenchError(f"wrk had errors:\n{output}")
        rate = found(r"Requests/sec:\s+([0-9.]+)", output, "wrk")
        requests = found(r"([0-9]+) requests in", output, "wrk")
        return Sample(requests, requests / rate, usage)

    def h2load(self, protocol, port, path):
        scheme = "https" if protocol == "h2" else "http"
        output, usage = run([tool("h2load"), "-t1", f"-c{CLIENTS // STREAMS}", f"-m{STREAMS}",
                             "-w30", "-W30", f"-D{max(1, round(SECONDS))}",
                             f"{scheme}://127.0.0.1:{port}{path}"])
        rate = found(r"finished in [^,]*, ([0-9.]+) req/s", output, "h2load")
        requests = found(r"([0-9]+) succeeded", output, "h2load")
        if found(r"([0-9]+) failed", output, "h2load"):
            raise BenchError(f"h2load had errors:\n{output}")
        return Sample(requests, requests / rate, usage)


def start_nginx(lab):
    """nginx with one worker on the other core; returns {protocol: port}."""
    folder = lab.folder / "nginx"
    folder.mkdir()
    for size in (SMALL_BYTES, LARGE_BYTES):
        (folder / str(size)).write_bytes(b"x" * size)
    subprocess.run([tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key.pem", "-out",
                    folder / "cert.pem", "-days", "2", "-subj", "/CN=bench.example"],
                   check=True, capture_output=True)
    ports = {name: free_port() for name in ("http", "https", "h2", "h2c")}
    user = "user root;" if os.geteuid() == 0 else ""
    config = lab.write("nginx.conf", NGINX.format(folder=folder, user=user, **ports))
    child = lab.start("nginx", [tool("nginx"), "-c", config, "-e", f"{folder}/start.log"],
                      LOAD_CORE)
    child.wait_for_port(ports["h2c"])
    return ports


def start_origin(lab):
    child = lab.start("spillorigin", [program("spillorigin"), "--http", "127.0.0.1:0",
                                      "--slots", "1024"], LOAD_CORE)
    return int(child.wait_for_line("listening ").split("http=")[1].split()[0].rsplit(":", 1)[1])


def start_nghttpd(lab):
    port = free_port()
    child = lab.start("nghttpd", [tool("nghttpd"), "-d", lab.folder / "nginx", "--no-tls",
                                  "--max-concurrent-streams=1000", str(port)], LOAD_CORE)
    child.wait_for_port(port)
    return port


def beside(report, title, ours, theirs, name, protocol, port, path):
    """Two rows: rate and processor time, ours beside another's, in alternating runs."""
    if not wanted(title):
        return
    if not tool(name):
        report.note(f"{title}: {name} is not installed")
        return
    samples = {"spillload": [], name: []}
    for number in range(ROUNDS):
        for who, load in (("spillload", ours), (name, theirs)):
            progress(f"{title}: round {number + 1} of {ROUNDS}: {who}")
            samples[who].append(load(protocol, port, path))
    progress("")
    mine, other = samples["spillload"], samples[name]
    for field, what, unit, goal in (("rate", "rate", "req/s", "ratio >= 0.90"),
                                    ("cpu_us", "CPU per request", "us", "ratio <= 1.10"),
                                    ("user_us", "user CPU per request", "us", None)):
        report.add(f"{title}: {what}", median(mine, field), unit, name, median(other, field),
                   paired_ratio(mine, other, field), goal)


def main():
    report = Report("load", f"spillload on one core, the server on the other; {CLIENTS} clients, "
                            f"closed loop; HTTP/2: {STREAMS} streams on each connection")
    with Lab() as lab:
        if not program("spillload") or not program("spillorigin"):
            raise BenchError(f"{BIN}/spillload is missing: run make first")
        nginx = start_nginx(lab)
        generators = Generators(lab)
        small, large = f"/{SMALL_BYTES}", f"/{LARGE_BYTES}"
        for title, name, protocol, port, path in (
                ("HTTP/1.1, spillorigin, 128 B", "wrk", "http", start_origin(lab), "/"),
                ("HTTP/1.1, nginx, 128 B", "wrk", "http", nginx["http"], small),
                ("HTTP/1.1, nginx, 64 KiB", "wrk", "http", nginx["http"], large),
                ("TLS, nginx, 128 B", "wrk", "https", nginx["https"], small),
                ("TLS, nginx, 64 KiB", "wrk", "https", nginx["https"], large),
                ("HTTP/2, nghttpd, 128 B", "h2load", "h2c", start_nghttpd(lab), small),
                ("HTTP/2, nginx, 64 KiB", "h2load", "h2c", nginx["h2c"], large),
                ("HTTP/2 over TLS, nginx, 128 B", "h2load", "h2", nginx["h2"], small)):
            beside(report, title, generators.spillload, getattr(generators, name), name, protocol,
                   port, path)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-load: {error}")
