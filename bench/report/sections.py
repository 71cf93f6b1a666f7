# SPDX-License-Identifier: Apache-2.0
"""The sections of the report: each takes the page and its runs, measures, and adds what it found."""

import os
import platform
import shutil
import struct
import subprocess
import time

import peers
import report as bench_report
from lab import free_port, program
from page import Section
from runs import few, seconds

# ---------------------------------------------------------------- isolation

SLOTS = 8
SERVICE_MS = 18
CAPACITY = SLOTS * 1000 // SERVICE_MS
STEADY_RATE = 240
BURST_RATE = 320
DEPTH = 8
LEAST_SERVED = 0.95
SCHEDULERS = (("fifo", "FIFO"), ("sfqd", "SFQ(D)"))
PROTOCOLS = (("http", "HTTP"), ("nfs", "NFS"))

LISTENERS = """\
  - {{ name: web, bind: ["127.0.0.1:{http}"], protocol: http, pool: farm }}
  - {{ name: nas, bind: ["127.0.0.1:{nfs}"], protocol: nfs, pool: array }}"""
POOL = """\
  - name: {name}
    servers: [ {{ address: "127.0.0.1:{port}", depth: {depth} }} ]
    scheduler: {{ algorithm: {algorithm} }}
    queue: {{ limit: 10000, flow-limit: 10000, timeout: 60s }}
    flows:
      - {{ name: steady, weight: 2, match: {match} }}
      - {{ name: onoff, weight: 1 }}"""


def two_flow_proxy(runs, name, origin, algorithm, depth):
    ports = {"http": free_port(), "nfs": free_port()}
    pools = [POOL.format(name=pool, port=origin.ports[protocol], depth=depth, algorithm=algorithm,
                         match=match)
             for pool, protocol, match in (("farm", "http", "{ header: { X-Flow: steady } }"),
                                           ("array", "nfs", "{ uid: 1001 }"))]
    return runs.spillway(name, LISTENERS.format(**ports), "\n".join(pools), ports)


def flow(protocol, name, port, load):
    who = (f"header=X-Flow:{name}" if protocol == "http" else
           f"op=read,bytes=4096,uid={1001 if name == 'steady' else 1002}")
    return f"name={name},proto={protocol},target=127.0.0.1:{port},{who},{load}"


def isolation(page, runs):
    section = Section("isolation", "Isolation: a steady flow beside a bursty one")
    section.text(
        f"A service with {SLOTS} slots of {SERVICE_MS} ms (exponential), about {CAPACITY} requests "
        f"per second, stands behind spillway. The flow steady (weight 2) asks for {STEADY_RATE} "
        f"per second, less than its two thirds. The flow onoff (weight 1) asks for {BURST_RATE} "
        "per second for 3 s, more than twice its third, then rests for 3 s. Compared is what "
        "steady feels of that when requests are let through in the order they came (FIFO), and "
        "when they are scheduled by weight (SFQ(D)). Response times count from when a request was "
        "meant to be sent.")
    origin = runs.origin("--slots", str(SLOTS), "--service", f"{SERVICE_MS}ms")
    files = {}
    for algorithm, label in SCHEDULERS:
        proxy = two_flow_proxy(runs, f"isolation-{algorithm}", origin, algorithm, DEPTH)
        for protocol, title in PROTOCOLS:
            flows = [flow(protocol, "steady", proxy.ports[protocol], f"rate={STEADY_RATE}/s"),
                     flow(protocol, "onoff", proxy.ports[protocol],
                          f"rate={BURST_RATE}/s,on=3s,off=3s")]
            files[protocol, algorithm] = runs.load(f"isolation-{protocol}-{algorithm}",
                                                   f"{title}, {label}", flows, seconds(12))
        runs.stop(proxy)
    runs.stop(origin)
    for protocol, title in PROTOCOLS:
        show_isolation(page, section, runs, title, protocol,
                       [files[protocol, algorithm] for algorithm, _ in SCHEDULERS])
    runs.tell(section)
    page.add(section)


def show_isolation(page, section, runs, title, protocol, files):
    section.heading(title)
    p99 = [runs.figure(file, "flows/steady/latency/p99_ms", 0) for file in files]
    factor = p99[0].value / p99[1].value if p99[1].value else 0
    words = f"{title}: 99th percentile of the steady flow, {p99[0]} ms with FIFO, {p99[1]} ms with SFQ(D)"
    fair = "flows/steady/"
    served = (runs.figure(files[1], f"{fair}throughput_per_s").value
              / max(runs.figure(files[1], f"{fair}offered_per_s").value, 1))
    if served >= LEAST_SERVED:
        section.finding(f"{words}: a factor of {factor:.1f}.")
        page.card(f"{factor:.1f}×", words, section.name)
    else:
        section.note(f"{title}: with SFQ(D) only {served:.0%} of what steady asked for was done, so "
                     "the machine did not give the service its capacity while this ran. The runs "
                     "say nothing about isolation; repeat them on a quiet machine.")
    section.table(
        ["flow", "scheduler", "offered/s", "done/s", "mean ms", "p50 ms", "p99 ms", "max ms",
         "refused"],
        [[name, label] + [runs.figure(file, f"flows/{name}/{key}", decimals)
                          for key, decimals in (
                              ("offered_per_s", 1), ("throughput_per_s", 1), ("latency/mean_ms", 1),
                              ("latency/p50_ms", 1), ("latency/p99_ms", 1), ("latency/max_ms", 1),
                              ("outcomes/refused", 0))]
         for name in ("steady", "onoff") for (_, label), file in zip(SCHEDULERS, files)])
    for (algorithm, label), file in zip(SCHEDULERS, files):
        runs.plot(section, "time", [file], f"isolation-{protocol}-{algorithm}-time",
                  f"{title}, {label}: throughput and response time of both flows")
    runs.plot(section, "percentiles", files, f"isolation-{protocol}-percentiles",
              f"{title}: response time by percentile, FIFO and SFQ(D)")

# ---------------------------------------------------------------- depth


DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def depth(page, runs):
    section = Section("depth", "Depth: how much is let through at a time")
    section.text(
        "More requests at the service at a time use it better, fewer leave more to the scheduler. "
        f"The same service of {SLOTS} slots; steady asks for {STEADY_RATE} per second, 64 clients "
        "of the other flow always want more. SFQ(D), weights 2 and 1, over HTTP.")
    origin = runs.origin("--slots", str(SLOTS), "--service", f"{SERVICE_MS}ms")
    steps = []
    for value in few(DEPTHS):
        proxy = two_flow_proxy(runs, f"depth-{value}", origin, "sfqd", value)
        flows = [flow("http", "steady", proxy.ports["http"], f"rate={STEADY_RATE}/s"),
                 flow("http", "crowd", proxy.ports["http"], "concurrency=64")]
        steps.append((value, runs.load(f"depth-{value}", f"depth {value}", flows, seconds(5))))
        runs.stop(proxy)
    file = runs.join_sweep("depth", "depth", steps)
    runs.plot(section, "sweep", [file], "depth", "Throughput and 99th percentile by depth")
    section.table(
        ["depth", "steady done/s", "crowd done/s", "steady p50 ms", "steady p99 ms",
         "crowd p50 ms"],
        [[value] + [runs.figure(path, f"flows/{key}", 1)
                    for key in ("steady/throughput_per_s", "crowd/throughput_per_s",
                                "steady/latency/p50_ms", "steady/latency/p99_ms",
                                "crowd/latency/p50_ms")]
         for value, path in steps])
    section.heading("Clients without a proxy")
    section.text("The service itself, in a closed loop: throughput grows with the clients until "
                 "every slot is busy, from there on only the response time does.")
    clients = ",".join(str(value) for value in few((1, 2, 4, 8, 16, 32, 64)))
    file, swept = runs.sweep("clients", f"concurrency={clients}",
                             [f"name=clients,proto=http,target=127.0.0.1:{origin.ports['http']}"
                              ",concurrency=1"], seconds(3), len(few(DEPTHS)))
    runs.stop(origin)
    runs.plot(section, "sweep", [file], "clients", "Throughput and 99th percentile by clients")
    knee = swept.get("knee")
    if knee is not None:
        section.finding(f"The knee is at {knee:g} clients; the service has {SLOTS} slots.")
    runs.tell(section)
    page.add(section)

# ---------------------------------------------------------------- simulation


SIMULATED_S = 300
CAPTIONS = {
    "sweep-depth-8": "f at 240 requests/s, depth 8: what g's arrivals do to it",
    "sweep-depth-32": "f at 240 requests/s, depth 32",
    "depth": "depth 16 and 64",
    "protection": "f at 300 requests/s, g with the shorter deadline",
    "on-off": "f beside a g that comes and goes",
    "gate-delay": "wait in the queue while the capacity changes, at two loads",
    "gate-completion": "completion times of what was served",
    "link-delay": "delay before a link whose capacity changes, with TCP senders",
    "link-completion": "completion times of TCP transfers over it",
}
ADMISSION_FIGURES = ("gate-", "link-")


def simulation(page, runs):
    section = Section("simulation", "Simulation: the same question in virtual time")
    section.text(
        "spillsim runs the proxy's scheduler against a simulated array (4 disks, 6.7 ms, "
        "exponential: 597 requests per second) in virtual time, so its figures are the same on "
        f"every machine. f (weight 2) asks for 240 per second, g (weight 1) for 500: {SIMULATED_S} "
        "simulated seconds for each depth, SFQ(D).")
    rows = []
    for value in few(DEPTHS):
        file = runs.simulate(f"simulated-depth-{value}", [
            "array", "--algorithm", "sfqd", "--depth", str(value), "--duration",
            f"{SIMULATED_S}s", "--flow", "name=f,weight=2,rate=240/s", "--flow",
            "name=g,weight=1,rate=500/s"])
        rows.append([value] + [runs.figure(file, f"flows/{key}", 1) for key in (
            "f/completed_per_s", "g/completed_per_s", "f/response/mean_ms", "f/response/p99_ms")])
    section.table(["depth", "f done/s", "g done/s", "f mean ms", "f p99 ms"], rows)
    add_figures(section, runs, lambda name: not name.startswith(ADMISSION_FIGURES))
    runs.tell(section)
    page.add(section)


def add_figures(section, runs, wanted):
    """The pictures of make figures whose name is wanted, when it was run before."""
    found = sorted(path for path in (runs.folder.parent / "figures").glob("*.png")
                   if wanted(path.stem))
    if not found:
        section.text("make figures draws the figures of the paper's evaluation in some minutes; "
                     "after it, make report shows them here.")
    for path in found:
        picture = f"pictures/figure-{path.name}"
        shutil.copy(path, runs.folder / picture)
        with open(path, "rb") as file:
            size = struct.unpack(">II", file.read(24)[16:])  # a PNG's width and height
        section.picture(picture, CAPTIONS.get(path.stem, path.stem), size, ["make figures"])

# ---------------------------------------------------------------- admission


POLICIES = (("none", "none"), ("tail", "at most 64 wait"), ("codel", "CoDel"), ("pie", "PIE"),
            ("duk-literal", "DUK as published"), ("duk", "DUK"))
ADMISSION_LOADS = ("0.8", "0.9", "1.2", "2", "10")
COSTS = "pareto:1.2:1:64"
OVERLOAD = "2"


def admission(page, runs):
    section = Section("admission", "Admission: what a queue is for, in virtual time")
    section.text(
        "When more comes than can be served, a queue grows until something stops it. An admission "
        "policy puts out what would only make it longer. Simulated is a pool of 16 slots that "
        "serves 500 requests per second, under open loops of so many times that load, the same "
        "requests for every policy. Wait is that of the requests served; beyond is how many points "
        "of all requests were refused that a perfect policy would have served; below zero where "
        "requests still wait that nobody can serve.")
    file = runs.simulate("admission", [
        "gate", "--load", ",".join(ADMISSION_LOADS), "--cost", "1", "--cost", COSTS, "--duration",
        "100s"])
    for cost, title in (("1", "Equal requests"), (COSTS, "Costs of 1 to 64, counted as costs")):
        section.heading(title)
        section.table(
            ["load", "policy", "wait ms", "p99 ms", "busy %", "refused %", "beyond"],
            [[load, label] + [runs.figure(file, f"rows/{policy} load {load} cost {cost} seed 1/{key}",
                                          decimals, scale)
                              for key, decimals, scale in (
                                  ("wait/mean_ms", 1, 1), ("wait/p99_ms", 1, 1), ("used", 1, 100),
                                  ("refused", 1, 100), ("beyond_ideal", 2, 100))]
             for load in few(ADMISSION_LOADS) for policy, label in POLICIES])
    wait = runs.figure(file, f"rows/duk load {OVERLOAD} cost 1 seed 1/wait/mean_ms")
    words = (f"mean wait of what DUK lets in at {OVERLOAD} times the capacity, with nothing to set; "
             f"PIE: {runs.figure(file, f'rows/pie load {OVERLOAD} cost 1 seed 1/wait/mean_ms')} ms")
    page.card(f"{wait} ms", words, section.name)
    section.finding(f"{words[0].upper()}{words[1:]}; DUK: {wait} ms.")
    add_figures(section, runs, lambda name: name.startswith(ADMISSION_FIGURES))
    runs.tell(section)
    page.add(section)

# ---------------------------------------------------------------- the generator


RATES = (1000, 5000, 10000, 20000, 40000, 80000)
# An open loop whose requests leave later than meant measures something else than was asked for.
MOST_LATE = 0.01
MOST_OFF = 0.02


def generator(page, runs):
    section = Section("generator", "The generator: can its figures be trusted?")
    section.text(
        "An open loop sends by the clock, whether replies come or not, so the generator must "
        "send when it said it would. It shares a core with the service here, which answers at "
        "once. Late is a request that was made more than 1 ms after the time it was meant for; "
        "its response time counts from the time it was meant for all the same.")
    origin = runs.origin()
    rates = ",".join(f"{rate}/s" for rate in few(RATES))
    for protocol, title, more in (("http", "HTTP", ""), ("nfs", "NFS", ",op=getattr")):
        file, swept = runs.sweep(
            f"generator-{protocol}", f"rate={rates}",
            [f"name=load,proto={protocol},target=127.0.0.1:{origin.ports[protocol]},rate=1/s,"
             f"connections=16,arrival=constant{more}"], seconds(3), len(few(RATES)))
        show_generator(page, section, runs, title, file, swept)
        closed = runs.load(f"generator-{protocol}-closed", f"{title}, closed loop",
                           [f"name=load,proto={protocol},target=127.0.0.1:{origin.ports[protocol]}"
                            f",concurrency=64,connections=16{more}"], seconds(3))
        section.text(f"As fast as it goes ({title}, closed loop, 64 clients, generator and service "
                     "on one core): "
                     f"{runs.figure(closed, 'flows/load/throughput_per_s', 0)} requests/s.")
    runs.stop(origin)
    runs.notes = []  # that the higher rates are too much is what the table is about
    runs.tell(section)
    page.add(section)


def show_generator(page, section, runs, title, file, swept):
    rows, exact = [], 0
    for step in swept["steps"]:
        base = f"steps/{step['text']}/summary/flows/load"
        load = next(one for one in step["summary"]["flows"] if one["name"] == "load")
        late = load["late"] / load["offered"] if load["offered"] else 1
        good = late <= MOST_LATE and abs(load["throughput_per_s"] / step["value"] - 1) <= MOST_OFF
        if good:
            exact = max(exact, step["value"])
        rows.append([step["text"]] + [
            runs.figure(file, f"{base}/{key}", decimals) for key, decimals in (
                ("offered_per_s", 0), ("throughput_per_s", 0), ("late", 0), ("late_max_ms", 2),
                ("latency/p50_ms", 3), ("latency/p99_ms", 3))] + ["yes" if good else "no"])
    section.heading(title)
    section.table(["asked", "offered/s", "done/s", "late", "latest ms", "p50 ms", "p99 ms",
                   "kept"], rows)
    if not exact:
        section.note(f"{title}: no rate of the table was kept with at most {MOST_LATE:.0%} of the "
                     "requests late: generator and service did not have their core.")
    runs.plot(section, "sweep", [file], file.split("/")[1].removesuffix(".json"),
              f"{title}: throughput and 99th percentile by the rate that was asked for")
    if exact:
        page.card(f"{exact:,.0f}/s", f"{title}: highest rate of the table that the generator kept, "
                  "with at most 1 % of the requests late, on one core with the service",
                  section.name)

# ---------------------------------------------------------------- latency


LATENCY_RATE = 2000


def latency(page, runs):
    section = Section("latency", "Latency: what a proxy adds")
    section.text(
        f"{LATENCY_RATE:,} requests per second, evenly spaced, to a service that answers at once: "
        "directly, through spillway with scheduling, and through HAProxy. The proxy has a core "
        "of its own; service and generator share the other one.")
    origin = runs.origin()
    for protocol, title in PROTOCOLS:
        started = latency_proxies(runs, origin, protocol)
        files = {}
        for name, port in started["ports"].items():
            more = "" if protocol == "http" else ",op=getattr,uid=1001"
            files[name] = runs.load(
                f"latency-{protocol}-{name}", f"{title}, {name}",
                [f"name=load,proto={protocol},target=127.0.0.1:{port},rate={LATENCY_RATE}/s,"
                 f"connections=16,arrival=constant{more}"], seconds(5))
        for child in started["children"]:
            runs.stop(child)
        show_latency(page, section, runs, title, protocol, files)
    runs.stop(origin)
    runs.tell(section)
    page.add(section)


def latency_proxies(runs, origin, protocol):
    """Ports by name, direct first, and the children behind them."""
    backend = origin.ports[protocol]
    ports = {"direct": backend}
    proxy = two_flow_proxy(runs, f"latency-{protocol}-spillway", origin, "sfqd", 64)
    ports["spillway"] = proxy.ports[protocol]
    port = free_port()
    if protocol == "http":
        text = (f"    mode http\n    http-reuse always\nfrontend web\n    bind 127.0.0.1:{port}\n"
                f"    default_backend farm\nbackend farm\n"
                f"    server one 127.0.0.1:{backend} pool-max-conn 256\n")
    else:
        text = (f"    mode tcp\nlisten nas\n    bind 127.0.0.1:{port}\n"
                f"    server one 127.0.0.1:{backend}\n")
    other = runs.haproxy(f"latency-{protocol}-haproxy", peers.haproxy_global() + text, port)
    if other:
        ports["haproxy"] = port
    return {"ports": ports, "children": [child for child in (other, proxy) if child]}


def show_latency(page, section, runs, title, protocol, files):
    section.heading(title)
    keys = [("latency/p50_ms", "p50 µs"), ("latency/p90_ms", "p90 µs"), ("latency/p99_ms", "p99 µs"),
            ("latency/p999_ms", "p99.9 µs"), ("latency/max_ms", "max µs")]
    section.table(["way", "done/s", *(head for _, head in keys)],
                  [[name, runs.figure(file, "flows/load/throughput_per_s", 0)]
                   + [runs.figure(file, f"flows/load/{key}", 0, 1000) for key, _ in keys]
                   for name, file in files.items()])
    runs.plot(section, "percentiles", list(files.values()), f"latency-{protocol}",
              f"{title}: response time by percentile, " + ", ".join(files))
    short = [name for name, file in files.items()
             if runs.figure(file, "flows/load/throughput_per_s").value < LEAST_SERVED * LATENCY_RATE]
    if short:
        section.note(f"{title}, {' and '.join(short)}: {LATENCY_RATE:,} requests/s were not reached, "
                     "so requests queued, and the response times above are those of the queue. "
                     "Repeat it on a quiet machine.")
        return
    p50 = {name: runs.figure(file, "flows/load/latency/p50_ms").value * 1000
           for name, file in files.items()}
    added = p50["spillway"] - p50["direct"]
    words = f"{title}: what spillway adds to the median at {LATENCY_RATE:,} requests/s"
    if "haproxy" in p50:
        words += f" (HAProxy: {p50['haproxy'] - p50['direct']:,.0f} µs)"
    page.card(f"{added:,.0f} µs", words, section.name)
    section.finding(f"{words}: {added:,.0f} µs.")

# ---------------------------------------------------------------- what is not there yet


OPTIONAL = (("scaling", "Scaling", ("scaling", "fleet", "autoscaler")),)


def optional(page, runs):
    """Sections of features that this build of spillway may not have: it is asked, not assumed."""
    done = subprocess.run([runs.need("spillway"), "--help-config"], capture_output=True, text=True,
                          timeout=10, check=True)
    words = {part.removesuffix("[]") for line in done.stdout.splitlines()
             if line and not line.startswith(" ") for part in line.strip().split(".")}
    for name, title, keys in OPTIONAL:
        section = Section(name, title)
        if words.intersection(keys):
            section.text(f"This build of spillway has it; the standard set of this report does not "
                         f"measure it. spillway --help-config lists its keys.")
        else:
            section.text("Not part of this build: spillway --help-config names no key for it.")
        section.commands("How it was asked", ["spillway --help-config"])
        page.add(section)

# ---------------------------------------------------------------- the machine


def first_line_of(path, start):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(start):
                return line.split(":", 1)[1].strip()
    return "unknown"


def machine(page, began, load_before):
    """Measured on what, by what, and how long it took."""
    section = Section("machine", "Machine and programs")
    versions = [bench_report.first_line([program("spillway"), "-V"], "spillway"),
                bench_report.first_line([peers.tool("haproxy"), "-v"], "HAProxy"),
                bench_report.first_line([peers.tool("gnuplot"), "--version"], "gnuplot")]
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
        congestion = file.read().strip()
    memory_kib = int(first_line_of("/proc/meminfo", "MemTotal").split()[0])
    virtual = " (virtual machine)" if "hypervisor" in first_line_of("/proc/cpuinfo", "flags") else ""
    rows = [["processor", first_line_of("/proc/cpuinfo", "model name") + virtual],
            ["cores that may be used", str(len(os.sched_getaffinity(0)))],
            ["memory", f"{memory_kib / 2**20:.1f} GiB"],
            ["kernel", f"{platform.system()} {platform.release()}"],
            ["TCP", f"loopback, {congestion}"],
            ["programs", ", ".join(filter(None, versions))],
            ["load average before", f"{load_before:.2f}"],
            ["measured", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(began))],
            ["took", f"{time.time() - began:.0f} s"]]
    section.table(["what", "value"], rows)
    if load_before > 0.5:
        page.warning = (f"The machine was busy with something else when this began (load average "
                        f"{load_before:.1f} on {len(os.sched_getaffinity(0))} cores): figures, above "
                        "all response times, are worse than it can do.")
    section.commands("All of it again", ["make report"])
    page.add(section)
