#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of bench-nfs that runs against a real server, NFS-Ganesha. For information only: the
server is the limit, the proxies' cost is small beside it.

bench_nfs.py starts this in network, mount and process namespaces of its own, where it may have a
port mapper and a /run without touching the machine's, and where nothing outlives it. It prints
its results as JSON on stdout: {"rows": [report rows' arguments], "notes": [sentences]}.
"""

import json
import os
import subprocess
import sys
import tempfile

import peers
from lab import (LOAD_CORE, BenchError, Lab, compare, disturbances, free_port, median,
                 paired_ratio, run_load, tool)

TUNED = "haproxy-tcp, 256 KiB buffers"
ADDRESS = "10.87.0.1"
FILE_MIB = 64
NEEDED = ("ganesha.nfsd", "rpcbind", "ip", "mount", "unshare")


def missing():
    """What this part needs and the machine has not: a sentence, or None."""
    if os.geteuid() != 0:
        return "needs root for a namespace of its own"
    absent = [name for name in NEEDED if not tool(name)]
    return f"needs {', '.join(absent)}" if absent else None


def rows():
    """Runs this file in its own namespaces and returns what it measured."""
    # The folder is ours, so that it goes even when the one inside is ended without warning.
    with tempfile.TemporaryDirectory(prefix="spillway-bench-") as folder:
        os.chmod(folder, 0o755)
        done = subprocess.run(
            [tool("unshare"), "--net", "--mount", "--propagation", "private", "--pid", "--fork",
             "--kill-child", "--mount-proc", sys.executable, __file__],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
            env={**os.environ, "TMPDIR": folder})
    if done.returncode != 0:
        raise BenchError(f"against Ganesha: {done.stderr.strip()[-1500:]}")
    return json.loads(done.stdout)


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(words)}: {done.stderr.strip()}")


def prepare_namespace():
    """Loopback, one more interface (Ganesha wants one), and an empty /run for the port mapper."""
    command(tool("ip"), "link", "set", "lo", "up")
    command(tool("ip"), "link", "add", "bench0", "type", "bridge")
    command(tool("ip"), "addr", "add", f"{ADDRESS}/24", "dev", "bench0")
    command(tool("ip"), "link", "set", "bench0", "up")
    command(tool("mount"), "-t", "tmpfs", "none", "/run")
    os.makedirs("/run/rpcbind")
    os.makedirs("/run/ganesha")


def start_ganesha(lab):
    """The server on its own folder; returns its Child and the port of its MOUNT service."""
    export = lab.folder / "export"
    export.mkdir()
    (export / "data").write_bytes(os.urandom(1 << 20) * FILE_MIB)
    lab.start("rpcbind", [tool("rpcbind"), "-f"], LOAD_CORE).wait_for_port(111)
    nfs_port, mount_port = free_port(), free_port()
    config = lab.write("ganesha.conf", f"""\
NFS_CORE_PARAM {{
    Protocols = 3;
    NFS_Port = {nfs_port};
    MNT_Port = {mount_port};
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Enable_UDP = false;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{
    Export_Id = 1;
    Path = {export};
    Pseudo = /bench;
    Protocols = 3;
    Transports = TCP;
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    PrivilegedPort = false;
    MaxRead = 1048576;
    MaxWrite = 1048576;
    PrefRead = 1048576;
    PrefWrite = 1048576;
    FSAL {{ Name = VFS; }}
}}
""")
    server = lab.start("ganesha", [tool("ganesha.nfsd"), "-F", "-f", config,
                                   "-L", str(lab.folder / "ganesha.log"),
                                   "-p", str(lab.folder / "ganesha.pid"), "-N", "WARN"], LOAD_CORE)
    try:
        server.wait_for_port(mount_port)
        server.wait_for_port(nfs_port)
    except BenchError as error:
        log = lab.folder / "ganesha.log"
        raise BenchError(f"{error}\n{log.read_text()[-1500:] if log.exists() else ''}") from error
    return server, mount_port, export


def measure(lab):
    server, mount_port, export = start_ganesha(lab)
    proxies = {"spillway": peers.spillway_nfs(lab, server), TUNED: peers.haproxy_tcp(lab, server)}
    everyone = {"direct": server, **{name: child for name, child in proxies.items() if child}}
    result = {"rows": [], "notes": []}
    for title, arguments in (
            ("Ganesha, 4 KiB reads, 4 x 8 deep", ("--bytes", 4096, "--depth", 8)),
            ("Ganesha, 1 MiB reads, 4 x 2 deep", ("--bytes", 1 << 20, "--depth", 2))):
        samples = compare(everyone, lambda proxy, arguments=arguments: run_load(
            "rpcload", "--target", proxy.address, "--watch", proxy.pid, "--connections", 4,
            "--mount", f"127.0.0.1:{mount_port}", "--export", export, "--file", "data",
            *arguments))
        for name, field, unit, peer in (("CPU per call", "cpu_us", "us", TUNED),
                                        ("rate", "rate", "calls/s", TUNED),
                                        ("rate", "rate", "calls/s", "direct")):
            ours, theirs = samples.get("spillway"), samples.get(peer)
            result["rows"].append({
                "name": f"{title}: {name}", "unit": unit,
                "value": ours and median(ours, field),
                "peer": peer if theirs else None, "peer_value": theirs and median(theirs, field),
                "ratio": ours and theirs and paired_ratio(ours, theirs, field)})
        failed = {name: runs for name, runs in samples.items()
                  if any(run.errors for run in runs)}
        result["notes"].extend(note for note in disturbances(title, failed) if "failed" in note)
    return result


def main():
    prepare_namespace()
    with Lab() as lab:
        print(json.dumps(measure(lab)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"ganesha: {error}")
