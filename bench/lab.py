# SPDX-License-Identifier: Apache-2.0
"""What every bench needs: child processes pinned to cores, loads, and what they cost.

The proxy under test has core 0 for itself; the server behind it and the load share core 1. All
sockets are on the loopback interface, every run is bounded in time, and the children are ended by
their own process numbers, on failure and on Ctrl-C too.

Environment:
    SPILLWAY_BIN             folder of the programs (make sets it)
    SPILLWAY_RESULTS         folder for NAME.json (make sets it)
    SPILLWAY_BENCH_ROUNDS    rounds per comparison (5)
    SPILLWAY_BENCH_SECONDS   seconds counted per load (3)
    SPILLWAY_BENCH_ONLY      comma-separated parts of row names: run only these
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("SPILLWAY_BIN", ROOT / "build" / "release" / "bin"))
ROUNDS = int(os.environ.get("SPILLWAY_BENCH_ROUNDS", "5"))
SECONDS = float(os.environ.get("SPILLWAY_BENCH_SECONDS", "3"))
ONLY = [part for part in os.environ.get("SPILLWAY_BENCH_ONLY", "").split(",") if part]

PROXY_CORE = 0
LOAD_CORE = 1
START_LIMIT_S = 10
STOP_LIMIT_S = 5
# A proxy whose core it fills to less than this was not the bottleneck, or had to share it.
FULL = 0.95


class BenchError(Exception):
    """A bench could not be run; the message says why."""


def wanted(name):
    """Whether SPILLWAY_BENCH_ONLY lets the row `name` run."""
    return not ONLY or any(part in name for part in ONLY)


def program(name):
    """The path of one of our own programs, or None when it is not built."""
    path = BIN / name
    return str(path) if path.is_file() else None


def tool(name):
    """The path of an installed program (sbin folders searched too), or None."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(name, path=path)


def free_port():
    """A loopback TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Child:
    """One running program: its process, its log and where it listens."""

    def __init__(self, name, process, log):
        self.name = name
        self.process = process
        self.log = log
        self.port = None
        # The process whose processor time counts: nginx's worker is not its master.
        self.pid = process.pid

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def tail(self):
        """The end of what it printed, for messages."""
        return self.log.read_text(errors="replace")[-2000:]

    def wait_for_line(self, start):
        """Waits for an output line that begins with `start`; returns the rest of it."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            for line in self.log.read_text(errors="replace").splitlines():
                if line.startswith(start):
                    return line[len(start):].strip()
            self.must_live()
            time.sleep(0.01)
        raise BenchError(f"{self.name} printed no line beginning with {start!r}:\n{self.tail()}")

    def wait_for_port(self, port):
        """Waits until something accepts connections on `port`, and takes it as its own."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            self.must_live()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                self.port = port
                return self
            except OSError:
                time.sleep(0.01)
        raise BenchError(f"{self.name} does not listen on port {port}:\n{self.tail()}")

    def must_live(self):
        if self.process.poll() is not None:
            raise BenchError(f"{self.name} ended with status {self.process.returncode}:\n"
                             f"{self.tail()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Lab:
    """A folder and the children of one bench; leaving the context ends and removes them all."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-bench-"))
        self.folder.chmod(0o755)
        self.children = []

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def start(self, name, command, core, **more):
        """Starts a program on one core; its output goes to a file of its own."""
        log = self.folder / f"{name}-{len(self.children)}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                preexec_fn=lambda: pin(core), **more)
        child = Child(name, process, log)
        self.children.append(child)
        return child

    def stop(self, child):
        child.stop()
        self.children.remove(child)

    def server(self, name, *arguments):
        """Starts one of our bench servers, which choose a port and print it."""
        path = program(name)
        if not path:
            raise BenchError(f"{BIN}/{name} is missing: run make first")
        child = self.start(name, [path, *arguments], LOAD_CORE)
        child.port = int(child.wait_for_line("listening ").rsplit(":", 1)[1])
        return child


def pin(core):
    """Pins the calling process to a core, where there are as many."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def run_load(name, *arguments, seconds=None, may_starve=False):
    """Runs httpload or rpcload to its end and returns its result.

    A load that had no reply at all is an error, unless it `may_starve`: then that is its result.
    """
    seconds = SECONDS if seconds is None else seconds
    path = program(name)
    if not path:
        raise BenchError(f"{BIN}/{name} is missing: run make first")
    command = [path, *map(str, arguments), "--duration", f"{round(seconds * 1000)}ms"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds + 60, preexec_fn=lambda: pin(LOAD_CORE), check=False)
    result = json.loads(done.stdout) if done.stdout else {}
    starved = may_starve and result.get("seconds") and not result["errors"]
    if done.returncode != 0 and not starved:
        raise BenchError(f"{' '.join(command)}: status {done.returncode}\n"
                         f"{done.stdout}{done.stderr}")
    return result


class Sample:
    """One load against one proxy: what the load saw and what the proxy's process spent."""

    def __init__(self, result):
        requests = result["requests"]
        spent = result["watched"][0]
        self.rate = result["requests_per_s"]
        self.p50_us = result["p50_us"]
        self.p99_us = result["p99_us"]
        self.errors = result["errors"]
        self.cpu_us = spent["cpu_us"] / requests
        ticks = spent["user_us"] + spent["system_us"]
        self.user_us = self.cpu_us * spent["user_us"] / ticks if ticks else 0.0
        self.megabyte_us = spent["cpu_us"] / (result["bytes"] / 2**20) if result["bytes"] else 0.0
        # The parts of its core that the process filled, and that anybody did.
        self.fill = spent["cpu_us"] / (result["seconds"] * 1e6)
        self.core = result["cores"][PROXY_CORE]


def compare(contenders, load, rounds=None):
    """Runs `load` against each contender in turn, again and again: A B C A B C ...

    `contenders` maps a name to a Child, `load` takes the Child and returns a load's result.
    Returns name -> list of Sample, one per round.
    """
    samples = {name: [] for name in contenders}
    for number in range(rounds or ROUNDS):
        for name, child in contenders.items():
            progress(f"round {number + 1} of {rounds or ROUNDS}: {name}")
            child.must_live()
            samples[name].append(Sample(load(child)))
    progress("")
    return samples


def progress(text):
    """A line that is overwritten, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def median(samples, field):
    return statistics.median(getattr(sample, field) for sample in samples)


def paired_ratio(ours, peers, field):
    """The median of the per-round ratios: what disturbs a whole round cancels out."""
    pairs = [getattr(a, field) / getattr(b, field) for a, b in zip(ours, peers)
             if getattr(b, field)]
    return statistics.median(pairs) if pairs else None


def better(samples, names, field, highest=False):
    """The name among `names` with the lowest (or highest) median of `field`."""
    choose = max if highest else min
    return choose(names, key=lambda name: median(samples[name], field))


def disturbances(title, samples):
    """Sentences about proxies that did not fill their core, and about requests that failed."""
    for name, runs in samples.items():
        fill = median(runs, "fill")
        core = median(runs, "core")
        if fill < FULL:
            why = ("another process had the rest" if core - fill > 1 - FULL
                   else "the load or the server behind was the limit")
            yield (f"{title}: {name} filled {fill:.0%} of its core ({why}); "
                   "judge it by its processor time, not by its rate")
        failed = sum(run.errors for run in runs)
        if failed:
            yield f"{title}: {failed} requests through {name} failed"


def count_system_calls(child, load):
    """System calls per request of `child` during a load; also says what counted them.

    perf counts without disturbing; strace, where perf is missing, slows the process so much that
    more requests meet in one turn of its loop: its figure is a little too low.
    """
    perf = tool("perf")
    if perf and can_perf(perf):
        log = child.log.with_suffix(".perf")
        counter = subprocess.Popen(
            [perf, "stat", "-x", ",", "-o", str(log), "-e", "raw_syscalls:sys_enter",
             "-p", str(child.pid)], stdin=subprocess.DEVNULL, preexec_fn=lambda: pin(LOAD_CORE))
        name = "perf"
    elif tool("strace"):
        log = child.log.with_suffix(".strace")
        counter = subprocess.Popen(
            [tool("strace"), "-c", "-f", "-o", str(log), "-p", str(child.pid)],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: pin(LOAD_CORE))
        name = "strace"
    else:
        return None, "neither perf nor strace is installed"
    try:
        wait_attached(name, child.pid, counter)
        result = load(child)
    finally:
        counter.send_signal(signal.SIGINT)
        counter.wait(30)
    calls = perf_total(log) if name == "perf" else strace_total(log)
    return (calls / result["requests_total"] if calls else None), name


def can_perf(perf):
    probe = subprocess.run([perf, "stat", "-e", "raw_syscalls:sys_enter", "true"],
                           capture_output=True, check=False)
    return probe.returncode == 0 and b"not supported" not in probe.stderr


def wait_attached(name, pid, counter):
    """Until strace has attached (perf shows no sign of it; it is given a moment)."""
    if name == "perf":
        time.sleep(0.3)
        return
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and counter.poll() is None:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        if "TracerPid:\t0\n" not in status:
            return
        time.sleep(0.01)
    raise BenchError(f"strace could not attach to process {pid}")


def perf_total(log):
    for line in log.read_text().splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2].startswith("raw_syscalls"):
            return int(fields[0]) if fields[0].isdigit() else None
    return None


def strace_total(log):
    for line in log.read_text().splitlines():
        fields = line.split()
        if fields and fields[-1] == "total":
            return int(fields[3])
    return None


def resident_bytes(pid):
    """Memory that belongs to a process: private pages and its part of shared ones."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    raise BenchError(f"/proc/{pid}/smaps_rollup has no Pss line")
