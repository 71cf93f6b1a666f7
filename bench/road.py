# SPDX-License-Identifier: Apache-2.0
"""The array of the simulator on the real road: spillorigin as the service, our proxy before it with
two flows on HTTP and NFS, spillload as the clients.

Four slots of 6.7 ms, exponentially distributed, are 597 requests/s, which no processor here is
short of: the service is the bottleneck. A proxy lets 16 requests through at a time.
"""

import json
import os
import subprocess
import types

import peers
from lab import LOAD_CORE, BenchError, pin, program

SLOTS = 4
SERVICE_MS = 6.7
DEPTH = 16
# Whose requests are whose is told by a header or a user number. g has no match of its own but takes
# what is not f's, so that there is no third flow with a weight (and a window) of its own.
UIDS = {"f": 1001, "g": 1002}

LISTENERS = """\
  - {{ name: web, bind: ["127.0.0.1:{web}"], protocol: http, pool: farm }}
  - {{ name: nas, bind: ["127.0.0.1:{nas}"], protocol: nfs, pool: array }}"""
POOL = """\
  - name: {name}
    servers: [ {{ address: "{address}", depth: {depth} }} ]
    scheduler: {{ algorithm: {algorithm} }}
    queue: {{ limit: 10000, flow-limit: 10000, timeout: 60s }}
    flows:
      - {{ name: f, weight: {f}, match: {match}{terms_f} }}
      - {{ name: g, weight: {g}{terms_g} }}"""


def need(name):
    path = program(name)
    if not path:
        raise BenchError(f"{name} is missing: run make first")
    return path


class Array:
    """spillorigin; `http` and `nfs` are its addresses, as objects with `address`."""

    def __init__(self, lab, service_ms=SERVICE_MS):
        self.child = lab.start(
            "spillorigin",
            [need("spillorigin"), "--http", "127.0.0.1:0", "--nfs", "127.0.0.1:0",
             "--slots", str(SLOTS), "--service", f"{service_ms}ms"], LOAD_CORE)
        line = self.child.wait_for_line("listening ")
        self.child.wait_for_line("ready")
        addresses = dict(part.split("=") for part in line.split())
        self.http = types.SimpleNamespace(address=addresses["http"])
        self.nfs = types.SimpleNamespace(address=addresses["nfs"])
        self.capacity_per_s = SLOTS * 1000 / service_ms


def spillway(lab, array, algorithm, weights, targets=None):
    """Our proxy on both protocols, or None when it is not built.

    `weights` are those of f and g; `targets`, of f and g too, are for EDF. The result has the ports
    as `ports["http"]` and `ports["nfs"]`.
    """
    ports = {"http": peers.free_port(), "nfs": peers.free_port()}
    terms = [f", target: {target}" for target in targets] if targets else ["", ""]
    pools = [POOL.format(name=name, address=address, depth=DEPTH, algorithm=algorithm, f=weights[0],
                         g=weights[1], match=match, terms_f=terms[0], terms_g=terms[1])
             for name, address, match in (
                 ("farm", array.http.address, "{ header: { X-Flow: f } }"),
                 ("array", array.nfs.address, f"{{ uid: {UIDS['f']} }}"))]
    child = peers.spillway(lab, LISTENERS.format(web=ports["http"], nas=ports["nfs"]),
                           "\n".join(pools), ports["http"], f"spillway-{algorithm}")
    if child:
        child.wait_for_port(ports["nfs"])
        child.ports = ports
    return child


def flow(protocol, port, name, load):
    """One flow in spillload's syntax: f or g on a protocol, with `load` as further keys."""
    who = (f"header=X-Flow:{name}" if protocol == "http"
           else f"op=read,bytes=4096,uid={UIDS[name]}")
    return f"name={name}-{protocol},proto={protocol},target=127.0.0.1:{port},{who},{load}"


def run(lab, flows, seconds, warm_up_s=0.0, seed=1):
    """Runs spillload; returns the summary of each flow by name, and the lines of its seconds."""
    summary = lab.folder / "spillload.json"
    summary.unlink(missing_ok=True)
    words = [word for text in flows for word in ("--flow", text)]
    done = subprocess.run(
        [need("spillload"), *words, "--duration", f"{round(seconds * 1000)}ms", "--warmup",
         f"{round(warm_up_s * 1000)}ms", "--drain", "20s", "--seed", str(seed), "--live=json",
         "--json", summary],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=seconds + warm_up_s + 60, preexec_fn=lambda: pin(LOAD_CORE), env=os.environ)
    # Status 1 says that a flow had no good reply, which is a result here.
    if done.returncode not in (0, 1) or not summary.exists():
        raise BenchError(f"spillload: status {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["name"]: one for one in json.loads(summary.read_text())["flows"]}, lines


def failures(summaries):
    """Requests without a good reply."""
    return sum(one["unfinished"] + sum(one["outcomes"].values()) - one["outcomes"]["ok"]
               for one in summaries.values())
