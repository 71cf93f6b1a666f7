#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job on embedded services: two flows through the proxy, without and with fair scheduling.

One service with 8 slots (about 444 requests/s) stands behind the proxy, once as HTTP, once as NFS. Flow
`steady` (weight 2, so two thirds are its own) asks for a little over half of the capacity all the time.
Flow `onoff` (weight 1) asks for more than twice its share for 3 s, rests for 3 s, and so on. Shown is what
steady feels of that with a FIFO and with SFQ(D). Exit status 0: with SFQ(D) steady is isolated, on both
protocols.

Environment: SPILLWAY_BIN, the folder of the programs (default build/release/bin);
DEMO_SECONDS, the length of each of the four runs (default 18, a multiple of 6 shows whole cycles).
"""
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("SPILLWAY_BIN", os.path.join(ROOT, "build", "release", "bin"))
SECONDS = int(os.environ.get("DEMO_SECONDS", "18"))

SLOTS = 8
SERVICE_MS = 18
CAPACITY = SLOTS * 1000 // SERVICE_MS
STEADY_RATE = 240           # 54 % of the capacity, 81 % of steady's own two thirds
BURST_RATE = 320            # while ON: 2.2 times onoff's own third
SCHEDULERS = [("fifo", "FIFO"), ("sfqd", "SFQ(D)")]

# What "isolated" means here.
LEAST_FACTOR = 3.0          # steady's p99 with FIFO / with SFQ(D)
LEAST_SERVED = 0.95         # of what steady offered

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
children = []


class DemoFailed(Exception):
    """Something did not start or ended early; the text says what."""


class Child:
    """A program of ours: its own session, its output in a file; it dies with the demo."""

    def __init__(self, home, name, *arguments, output=None):
        path = os.path.join(BIN, name)
        if not os.access(path, os.X_OK):
            raise DemoFailed(f"{path} is not there; `make all` builds it")
        self.name = name
        self.log_path = os.path.join(home, f"{name}-{len(children)}.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [path, *arguments], stdin=subprocess.DEVNULL, stdout=output or log, stderr=log,
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        children.append(self)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def wait_for(self, condition, what):
        """Polls until condition() is true; fails when the child ends first or it takes too long."""
        end = time.monotonic() + 15
        while not condition():
            if self.process.poll() is not None:
                raise DemoFailed(f"{self.name} ended with status {self.process.returncode}:\n{self.log()}")
            if time.monotonic() > end:
                raise DemoFailed(f"{self.name}: {what} took too long:\n{self.log()}")
            time.sleep(0.01)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def end_children():
    for child in reversed(children):
        child.end()
    children.clear()


def free_ports(count):
    """Ports nobody listens on at this moment, all different."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ControlConnection(http.client.HTTPConnection):
    """HTTP over the proxy's control socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=2)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def queue_length(control, pool):
    """Requests that wait in the proxy now, from its metrics; None when it does not say."""
    try:
        connection = ControlConnection(control)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    except (OSError, http.client.HTTPException):
        return None
    found = re.search(r'^spillway_pool_queue_length\{[^}]*pool="%s"[^}]*\} (\S+)$' % pool, text, re.MULTILINE)
    return int(float(found.group(1))) if found else None


CONFIG = """\
workers: 1
log: {{ level: warning }}
admin: {{ socket: {control} }}
listeners:
  - {{ name: web, bind: "127.0.0.1:{web}", protocol: http, pool: farm }}
  - {{ name: nas, bind: "127.0.0.1:{nas}", protocol: nfs, pool: array }}
pools:
  - name: farm
    servers: [ {{ address: "{origin_http}", depth: {slots} }} ]
    scheduler: {{ algorithm: {algorithm} }}
    flows:
      - {{ name: steady, weight: 2, match: {{ header: {{ X-Flow: steady }} }} }}
      - {{ name: onoff, weight: 1, match: {{ header: {{ X-Flow: onoff }} }} }}
  - name: array
    servers: [ {{ address: "{origin_nfs}", depth: {slots} }} ]
    scheduler: {{ algorithm: {algorithm} }}
    flows:
      - {{ name: steady, weight: 2, match: {{ uid: 1001 }} }}
      - {{ name: onoff, weight: 1, match: {{ uid: 1002 }} }}
"""


def start_origin(home):
    """The service; returns its HTTP and NFS addresses."""
    origin = Child(home, "spillorigin", "--http", "127.0.0.1:0", "--nfs", "127.0.0.1:0", "--slots", str(SLOTS),
                   "--service", f"{SERVICE_MS}ms", "--distribution", "exponential")
    origin.wait_for(lambda: "ready\n" in origin.log(), "starting")
    return dict(word.split("=") for word in origin.log().splitlines()[0].split()[1:])


def start_proxy(home, addresses, algorithm):
    """A proxy with this scheduler; returns the child, its ports and its control socket."""
    web, nas = free_ports(2)
    control = os.path.join(home, "control.sock")
    path = os.path.join(home, f"spillway-{algorithm}.yaml")
    with open(path, "w") as file:
        file.write(CONFIG.format(control=control, web=web, nas=nas, slots=SLOTS, algorithm=algorithm,
                                 origin_http=addresses["http"], origin_nfs=addresses["nfs"]))
    proxy = Child(home, "spillway", "-f", path)
    proxy.wait_for(lambda: accepts(web) and accepts(nas), "listening")
    return proxy, {"http": web, "nfs": nas}, control


def flow_options(protocol, port):
    """spillload's arguments for the two flows."""
    if protocol == "http":
        common, steady, onoff = f"proto=http,target=127.0.0.1:{port}", "header=X-Flow:steady", "header=X-Flow:onoff"
    else:
        common, steady, onoff = f"proto=nfs,target=127.0.0.1:{port},op=read,bytes=4096", "uid=1001", "uid=1002"
    return ["--flow", f"name=steady,{common},{steady},rate={STEADY_RATE}/s",
            "--flow", f"name=onoff,{common},{onoff},rate={BURST_RATE}/s,on=3s,off=3s"]


def show_second(line, protocol, label, control):
    """One line per second: what both flows got, and what waits in the proxy."""
    second = json.loads(line)
    steady, onoff = second["flows"]
    queued = queue_length(control, "farm" if protocol == "http" else "array")
    print(f"{protocol:4} {label:6} {second['second']:3}s | steady {steady['rate']:5.0f}/s p99 {steady['p99_ms']:6.0f} ms"
          f" | onoff {onoff['rate']:5.0f}/s p99 {onoff['p99_ms']:6.0f} ms"
          f" | queued in the proxy {'?' if queued is None else queued}", flush=True)


def run_load(home, protocol, label, port, control):
    """Runs both flows; returns {flow: summary}."""
    summary = os.path.join(home, "summary.json")
    load = Child(home, "spillload", *flow_options(protocol, port), "--duration", f"{SECONDS}s", "--seed", "7",
                 "--live=json", "--json", summary, output=subprocess.PIPE)
    for raw in load.process.stdout:
        if raw.startswith(b"{"):
            show_second(raw, protocol, label, control)
    if load.process.wait() != 0:
        raise DemoFailed(f"spillload ended with status {load.process.returncode}:\n{load.log()}")
    with open(summary) as file:
        return {flow["name"]: flow for flow in json.load(file)["flows"]}


def print_table(results):
    print(f"\n{'protocol':8} {'flow':7} {'scheduler':9} {'offered/s':>9} {'done/s':>7} {'mean':>9} {'p50':>9} {'p99':>9}"
          f" {'refused':>8} {'errors':>7}")
    for protocol in ("http", "nfs"):
        for name in ("steady", "onoff"):
            for algorithm, label in SCHEDULERS:
                flow = results[protocol, algorithm][name]
                latency, outcomes = flow["latency"], flow["outcomes"]
                errors = sum(outcomes.values()) - outcomes["ok"] - outcomes["refused"]
                print(f"{protocol:8} {name:7} {label:9} {flow['offered_per_s']:9.1f} {flow['throughput_per_s']:7.1f}"
                      f" {latency['mean_ms']:6.1f} ms {latency['p50_ms']:6.1f} ms {latency['p99_ms']:6.1f} ms"
                      f" {outcomes['refused']:8} {errors:7}")
    print()


def verdict(results):
    """Says for each protocol whether steady was isolated; returns whether it was on both."""
    good = True
    for protocol in ("http", "nfs"):
        fifo = results[protocol, "fifo"]["steady"]
        fair = results[protocol, "sfqd"]["steady"]
        factor = fifo["latency"]["p99_ms"] / max(fair["latency"]["p99_ms"], 0.001)
        served = fair["throughput_per_s"] / max(fair["offered_per_s"], 0.001)
        isolated = factor >= LEAST_FACTOR and served >= LEAST_SERVED
        good = good and isolated
        print(f"{protocol}: {'isolated' if isolated else 'NOT isolated'}. With SFQ(D) the steady flow's p99 is"
              f" {fair['latency']['p99_ms']:.0f} ms instead of {fifo['latency']['p99_ms']:.0f} ms with FIFO"
              f" ({factor:.1f} times better, at least {LEAST_FACTOR:.0f} wanted), and it got {100 * served:.0f} % of what"
              f" it asked for (at least {100 * LEAST_SERVED:.0f} % wanted).")
    return good


def demo(home):
    print(f"One service: {SLOTS} slots, {SERVICE_MS} ms exponential, about {CAPACITY} requests/s. Flow steady: weight 2,"
          f" {STEADY_RATE}/s.\nFlow onoff: weight 1, {BURST_RATE}/s for 3 s, then 3 s nothing; its share is"
          f" {CAPACITY // 3}/s.\n")
    addresses = start_origin(home)
    results = {}
    for protocol in ("http", "nfs"):
        for algorithm, label in SCHEDULERS:
            proxy, ports, control = start_proxy(home, addresses, algorithm)
            results[protocol, algorithm] = run_load(home, protocol, label, ports[protocol], control)
            proxy.end()
            if proxy.process.returncode != 0:
                raise DemoFailed(f"spillway ended with status {proxy.process.returncode}:\n{proxy.log()}")
    print_table(results)
    return verdict(results)


def main():
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    home = tempfile.mkdtemp(prefix="spillway-demo-")
    try:
        return 0 if demo(home) else 1
    except DemoFailed as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    finally:
        end_children()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
