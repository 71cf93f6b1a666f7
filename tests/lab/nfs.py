# SPDX-License-Identifier: Apache-2.0
"""A private network with a real NFS server and a real kernel client.

    Net     a network and mount namespace of its own: loopback, a bridge with 10.77.0.1/24, a tap
            device on it. It has no name, so runs beside each other do not collide and nothing is
            left behind: it is gone when the last process in it is.
    Ganesha rpcbind and nfs-ganesha with its VFS back end in that network, exporting one folder
    kernel_job  runs a shell script on user-mode Linux, 10.77.0.2 on the tap device, which boots
            when first needed; gives output and exit status

Needs root. Set SPILLWAY_TEST_NFS=no to leave these tests out where that is impossible; they are
never left out silently.
"""
import ctypes
import glob
import os
import re
import socket

from . import process
from .spillway import nfs_config

SERVER_ADDRESS = "10.77.0.1"
CLIENT_ADDRESS = "10.77.0.2"
NFS_PORT = 20490
MOUNT_PORT = 20491
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def left_out():
    return os.environ.get("SPILLWAY_TEST_NFS", "yes") in ("no", "0", "off")


class Net:
    """The namespace. `wrap(argv)` makes a command run in it; `connect()` a socket in it."""

    def __init__(self):
        assert os.geteuid() == 0, (
            "the NFS laboratory needs root (network namespaces, user-mode Linux); "
            "run as root, or set SPILLWAY_TEST_NFS=no to leave these tests out"
        )
        script = (
            "mount -t tmpfs -o size=64m tmpfs /run && mkdir -p /run/rpcbind && "
            "chown _rpc /run/rpcbind && ip link set lo up && "
            "ip link add br0 type bridge && ip addr add 10.77.0.1/24 dev br0 && "
            "ip tuntap add dev tap0 mode tap && ip link set tap0 master br0 && "
            "ip link set tap0 up && ip link set br0 up && "
            "echo namespace ready && exec sleep infinity"
        )
        self.holder = process.Process(
            "namespace",
            [
                process.tool("unshare"),
                "--net",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                script,
            ],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        self.holder.wait_log("namespace ready")
        self.kernel = None

    def wrap(self, argv):
        pid = self.holder.pid
        return [
            process.tool("nsenter"),
            f"--net=/proc/{pid}/ns/net",
            f"--mount=/proc/{pid}/ns/mnt",
        ] + list(argv)

    def start(self, name, argv, **options):
        return process.Process(name, self.wrap(argv), **options)

    def run(self, argv, **options):
        return process.run(self.wrap(argv), **options)

    def _inside(self, action):
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)
        try:
            if _libc.setns(there, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return action()
            finally:
                if _libc.setns(home, CLONE_NEWNET) != 0:
                    os._exit(3)  # this thread would be lost in the wrong network
        finally:
            os.close(home)
            os.close(there)

    def kernel_client(self):
        """The kernel client, booted when there is none that is free (there is one tap device, so
        one at a time)."""
        if self.kernel and (self.kernel.busy or not self.kernel.process.running()):
            self.kernel.kill()
            self.kernel = None
        if not self.kernel:
            self.kernel = KernelClient(self)
        return self.kernel

    def connect(self, port, address=SERVER_ADDRESS, timeout_s=process.PATIENCE_S):
        """A TCP connection made in the namespace; the socket stays there, this thread does not."""
        return self._inside(lambda: socket.create_connection((address, port), timeout_s))

    def close(self):
        if self.kernel:
            self.kernel.kill()
        self.holder.kill()


GANESHA_CONFIGURATION = """
NFS_CORE_PARAM {{
    NFS_Protocols = 3, 4; NFS_Port = {nfs}; MNT_Port = {mount};
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
    NFS_Program = 100003;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
NFSV4 {{
    Graceless = {graceless}; Lease_Lifetime = 20; Grace_Period = 5; RecoveryBackend = fs;
    Minor_Versions = 0, 1, 2; Only_Numeric_Owners = true; Delegations = false;
}}
EXPORT_DEFAULTS {{
    SecType = sys; Squash = No_Root_Squash; Access_Type = RW; Protocols = 3, 4; Transports = TCP;
    PrivilegedPort = false;
    MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
}}
EXPORT {{ Export_Id = 7; Path = {folder}; Pseudo = /data; FSAL {{ Name = VFS; }} }}
"""


class Ganesha:
    """rpcbind and ganesha in a Net. The server caches what it has seen, so its files must not be
    changed
    behind its back: each test works in a `folder` of its own (NFSv4 sees it as `pseudo`).
    Unless graceless, it begins with a grace period of five seconds.
    """

    def __init__(self, net, graceless=True):
        self.net = net
        self.graceless = graceless
        # In memory: the tests are about the wire, and disks of test machines are slow and shared.
        self.home = process.scratch("spillway-nfs-", parent="/dev/shm")
        self.export = os.path.join(self.home, "export")
        os.mkdir(self.export, 0o777)
        os.chmod(self.export, 0o777)
        self.folders = 0
        self.new_folder()
        self.rpcbind = net.start("rpcbind", [process.tool("rpcbind"), "-f", "-w"])
        self.rpcbind.wait_listening(111)
        self.server = None
        self.runs = 0
        self.start()

    def new_folder(self):
        """A fresh, empty folder for the next test."""
        self.folders += 1
        name = f"test{self.folders}"
        self.folder, self.pseudo = os.path.join(self.export, name), f"/data/{name}"
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o777)

    def start(self):
        """Starts the server (again, on the same folder and ports)."""
        assert self.server is None or not self.server.running()
        self.runs += 1
        path = os.path.join(self.home, "ganesha.conf")
        with open(path, "w") as configuration:
            configuration.write(
                GANESHA_CONFIGURATION.format(
                    nfs=NFS_PORT,
                    mount=MOUNT_PORT,
                    folder=self.export,
                    graceless=str(self.graceless).lower(),
                )
            )
        name = f"ganesha{self.runs}"
        self.server = self.net.start(
            name,
            [
                process.tool("ganesha.nfsd"),
                "-F",
                "-f",
                path,
                "-L",
                "/dev/stdout",
                "-p",
                os.path.join(self.home, name + ".pid"),
                "-N",
                "NIV_EVENT",
            ],
        )
        self.server.wait_listening(NFS_PORT, MOUNT_PORT)
        self.server.wait_log("NFS SERVER INITIALIZED")

    def crash(self):
        """kill -9; the folder keeps what the server had written."""
        self.server.kill()

    def close(self):
        self.server.kill()
        self.rpcbind.kill()


def _kernel_modules():
    """(folder of the one installed kernel's modules, modules in an order that loads)."""
    folders = glob.glob("/usr/lib/uml/modules/*/modules.dep")
    assert folders, "no user-mode Linux modules: is the package user-mode-linux installed?"
    with open(sorted(folders)[-1]) as lines:
        needs = {}
        for line in lines:
            name, _, rest = line.partition(":")
            needs[name.strip()] = rest.split()
    folder = os.path.dirname(sorted(folders)[-1])
    order = []

    def add(path):
        for need in needs.get(path, ()):
            add(need)
        if path not in order:
            order.append(path)

    for wanted in ("nfsv3", "nfsv4"):
        paths = [p for p in needs if p.endswith(f"/{wanted}.ko")]
        assert paths, f"module {wanted} is not among {folder}'s"
        add(paths[0])
    return folder, order


INIT = """#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t tmpfs tmpfs /run
$b mount -t tmpfs tmpfs /mnt
$b mount -t tmpfs tmpfs /var/tmp
{modules}
ip link set lo up
ip addr add {client}/24 dev vec0
ip link set vec0 up
echo LAB-KERNEL $($b uname -r)
n=1
while :; do
    until [ -e {home}/job$n.go ]; do $b sleep 0.05; done
    echo LAB-JOB $n
    $b sh {home}/job$n.sh 2>&1
    echo LAB-STATUS $n $?
    for m in /mnt/*; do $b umount -f -l $m 2>/dev/null; done
    $b rm -rf /run/*
    n=$((n + 1))
done
"""


class KernelClient:
    """User-mode Linux, which runs one job after the other as they appear in its folder (it sees
    ours)."""

    def __init__(self, net, memory_mib=256):
        self.home = process.scratch("spillway-kernel-")
        folder, modules = _kernel_modules()
        init = os.path.join(self.home, "init.sh")
        with open(init, "w") as text:
            text.write(
                INIT.format(
                    modules="\n".join(f"$b insmod {folder}/{m}" for m in modules),
                    client=CLIENT_ADDRESS,
                    home=self.home,
                )
            )
        os.chmod(init, 0o755)
        self.process = net.start(
            "kernel-client",
            [
                process.tool("linux.uml"),
                f"mem={memory_mib}M",
                "rootfstype=hostfs",
                "rootflags=/",
                "ro",
                f"init={init}",
                "vec0:transport=tap,ifname=tap0,depth=128,gro=1",
                "con0=fd:0,fd:1",
                "con=null",
                "ssl=null",
                "quiet",
            ],
            env={"TMPDIR": "/dev/shm"},
        )
        self.jobs = 0
        self.busy = False

    def kill(self):
        self.process.kill()


class KernelJob:
    """A shell script running on the kernel client; result() gives (exit status, output)."""

    def __init__(self, net, script):
        self.client = net.kernel_client()
        self.client.jobs += 1
        self.client.busy = True
        self.number = self.client.jobs
        job = os.path.join(self.client.home, f"job{self.number}")
        with open(job + ".sh", "w") as text:
            text.write(script)
        open(job + ".go", "w").close()

    def output(self):
        """(what it has written so far, its exit status or None)."""
        log = self.client.process.log().replace("\r", "")
        _, _, rest = log.partition(f"LAB-JOB {self.number}\n")
        text, ended, status = rest.partition(f"LAB-STATUS {self.number} ")
        return text, int(status.split()[0]) if ended and status.split() else None

    def _until(self, condition, what, deadline_s):
        def now():
            assert (
                self.client.process.running()
            ), f"the kernel client ended:\n{self.client.process.log()[-3000:]}"
            return condition()

        process.wait_until(
            now, f"{what}; its output:\n{self.output()[0][-2000:]}", deadline_s, every_s=0.03
        )

    def says(self, words, deadline_s=120):
        self._until(
            lambda: words in self.output()[0] or self.output()[1] is not None,
            f"the job says {words!r}",
            deadline_s,
        )
        assert (
            words in self.output()[0]
        ), f"the job ended without {words!r}:\n{self.output()[0][-3000:]}"

    def result(self, deadline_s=120):
        self._until(lambda: self.output()[1] is not None, "the job ends", deadline_s)
        self.client.busy = False
        text, status = self.output()
        return status, text


def kernel_job(net, script, deadline_s=120):
    """Runs script on the kernel client; returns (exit status, output)."""
    return KernelJob(net, script).result(deadline_s)


def mount_command(ganesha, where, version, port, mount_port=None, options=""):
    """Shell text that mounts for the kernel client; version is 3, 4.0 or 4.1."""
    folder = ganesha.folder
    if str(version) == "3":
        kind = f"vers=3,tcp,nolock,port={port},mountport={mount_port or port},mountproto=tcp"
    else:
        kind, folder = f"vers={version},proto=tcp,port={port}", ganesha.pseudo
    extra = "," + options if options else ""
    return f"mkdir -p {where} && mount -t nfs -o {kind}{extra} {SERVER_ADDRESS}:{folder} {where}"


def proxy_config(port, **options):
    """Configuration of a proxy in the network, in front of Ganesha."""
    server = {"address": f"{SERVER_ADDRESS}:{NFS_PORT}", "mount-port": MOUNT_PORT}
    server.update(options.pop("server", {}))
    return nfs_config([server], f"{SERVER_ADDRESS}:{port}", **options)


def libnfs(net, tool_name, *arguments, check=True, deadline_s=None):
    """Runs nfs-cp, nfs-ls or nfs-cat within the network."""
    return net.run([process.tool(tool_name), *arguments], check=check, deadline_s=deadline_s)


def url(ganesha, name, port, mount_port=None, extra=""):
    """libnfs' URL of a file of the export by way of port."""
    ports = f"nfsport={port}&mountport={mount_port or port}"
    return f"nfs://{SERVER_ADDRESS}{ganesha.folder}/{name}?{ports}{extra}"


def connections(net, port):
    """Established TCP connections to port of the server's side, as text lines of ss."""
    done = net.run([process.tool("ss"), "-Htn", "state", "established", f"( sport = :{port} )"])
    return [line for line in done.stdout.splitlines() if line.strip()]
