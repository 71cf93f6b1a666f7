# SPDX-License-Identifier: Apache-2.0
"""Child processes of a test: started by argument list, ended by pid, their output kept and shown on
failure.

Every child has its own session, so Ctrl-C reaches only the test run, which then ends them. Should
the run itself be killed, a keeper (a process that only waits for that) ends them and removes the
folders.
"""
import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_alive = []
_folders = []

# A loaded machine and a sanitizer build are slow, not wrong: deadlines only end a hang.
PATIENCE_S = float(os.environ.get("SPILLWAY_TEST_PATIENCE", "30"))


KEEPER = """
import os, shutil, signal, sys
kept = set()
for line in sys.stdin:      # ends when the test run has
    (kept.add if line[0] == "+" else kept.discard)(line[1:].strip())
for thing in kept:
    if thing.startswith("/"):
        continue
    try:
        os.killpg(int(thing), signal.SIGKILL)
    except OSError:
        pass
for thing in kept:
    if thing.startswith("/"):
        shutil.rmtree(thing, ignore_errors=True)
"""
_keeper = None


def _keep(sign, thing):
    """Tells the keeper of a process group or folder that is there ("+") or gone ("-")."""
    global _keeper
    if _keeper is None:
        _keeper = subprocess.Popen(
            [sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
    try:
        _keeper.stdin.write(f"{sign}{thing}\n")
        _keeper.stdin.flush()
    except OSError:
        pass


def wait_until(condition, what, deadline_s=None, every_s=0.01):
    """Polls condition() until it returns something true and returns that; fails saying what never
    came."""
    end = time.monotonic() + (deadline_s or PATIENCE_S)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {deadline_s or PATIENCE_S:.0f} s: {what}")
        time.sleep(every_s)


def program(name):
    """Path of one of our programs: SPILLWAY_BIN, or the release build."""
    folder = os.environ.get("SPILLWAY_BIN", os.path.join(ROOT, "build", "release", "bin"))
    path = os.path.join(folder, name)
    assert os.access(
        path, os.X_OK
    ), f"{path} is not there: build it, or set SPILLWAY_BIN to the folder of programs"
    return path


def plain_program(name):
    """The same without sanitizers, for where these can't run: in user-mode Linux."""
    folder = os.environ.get("SPILLWAY_PLAIN_BIN")
    return os.path.join(folder, name) if folder else program(name)


def tool(name):
    """Path of a program of the system, searched in the administrator's folders too."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    assert path, f"{name} is not installed; `make deps` installs what the tests need"
    return path


def free_port():
    """A TCP port nobody listens on, below the range from which the kernel picks ports by itself."""
    for _ in range(200):
        port = random.randint(10000, 31999)
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free TCP port found")


def scratch(prefix="spillway-test-", parent=None):
    """A temporary folder, removed at the end of the run."""
    path = tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent)
    os.chmod(path, 0o755)
    _folders.append(path)
    _keep("+", path)
    return path


def listening_ports(pid):
    """TCP ports in LISTEN state in the network namespace of pid."""
    ports = set()
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}") as lines:
                next(lines)
                for line in lines:
                    fields = line.split()
                    if fields[3] == "0A":
                        ports.add(int(fields[1].rsplit(":", 1)[1], 16))
        except (OSError, StopIteration):
            pass
    return ports


def resident_bytes(pid):
    """Resident memory of a process."""
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Process:
    """A running child. `log()` is its standard output and error so far."""

    def __init__(self, name, argv, env=None, cwd=None, limits=(), stdin=subprocess.DEVNULL):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log_path = os.path.join(scratch("spillway-log-"), name + ".log")

        def in_child():
            for kind, value in limits:
                import resource

                resource.setrlimit(kind, value)

        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                self.argv,
                stdin=stdin,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(os.environ, **(env or {})),
                start_new_session=True,
                preexec_fn=in_child if limits else None,
            )
        _alive.append(self)
        _keep("+", self.pid)

    @property
    def pid(self):
        return self.child.pid

    def running(self):
        return self.child.poll() is None

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def send_signal(self, number):
        self.child.send_signal(number)

    def wait(self, deadline_s=None):
        """Waits for the end and returns the exit status (negative: the signal)."""
        try:
            status = self.child.wait(deadline_s or PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} has not ended; its log:\n{self.log()[-4000:]}"
            ) from None
        if self in _alive:
            _alive.remove(self)
            _keep("-", self.pid)
        return status

    def kill(self):
        """Ends the child and what it started, at once; quiet when they have ended already."""
        try:
            os.killpg(
                self.pid, signal.SIGKILL
            )  # its session is its own, so this is nobody else's group
        except ProcessLookupError:
            pass
        self.child.wait()
        if self in _alive:
            _alive.remove(self)
            _keep("-", self.pid)

    def wait_listening(self, *ports):
        """Until the ports are in LISTEN state, seen from outside (no connection is made)."""

        def ready():
            assert (
                self.running()
            ), f"{self.name} ended with {self.child.returncode}:\n{self.log()[-4000:]}"
            return set(ports) <= listening_ports(self.pid)

        wait_until(ready, f"{self.name} listens on {ports}")
        return self

    def wait_log(self, text, deadline_s=None):
        """Until text appears in the log."""
        wait_until(
            lambda: text in self.log() or not self.running(),
            f"{self.name} says {text!r}",
            deadline_s,
        )
        assert (
            text in self.log()
        ), f"{self.name} ended without saying {text!r}:\n{self.log()[-4000:]}"


def run(argv, deadline_s=None, check=True, **options):
    """Runs a command to its end; returns the completed process with text output."""
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(
        [str(a) for a in argv],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=deadline_s or 2 * PATIENCE_S,
        **options,
    )
    if check:
        assert (
            done.returncode == 0
        ), f"{' '.join(done.args)}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def logs():
    """(name, end of log) of the children alive now: for a failure's report."""
    return [(p.name, p.log()[-6000:]) for p in list(_alive)]


def end_all():
    """Ends every child that is left and removes the folders."""
    for child in list(_alive)[::-1]:
        child.kill()
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
        _keep("-", folder)
    _folders.clear()


atexit.register(end_all)
