# SPDX-License-Identifier: Apache-2.0
"""The proxy under test: a configuration in, metrics and control out, and a clean end asserted."""
import json
import os
import re
import signal
import socket

import yaml

from . import process

SANITIZER_REPORT = re.compile(
    r"(ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error: |SUMMARY: \w*Sanitizer)"
)


class Metrics(dict):
    """{(name, ((label, value), ...)): number}; call it with a name and labels."""

    def __call__(self, name, **labels):
        wanted = set(labels.items())
        found = [v for (n, ls), v in self.items() if n == name and wanted <= set(ls)]
        assert found, f"no sample {name} {labels}; names: {sorted({n for n, _ in self})}"
        return sum(found)


SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
UNESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse_metrics(text):
    """Prometheus text format 0.0.4, strictly; returns (Metrics, {name: type})."""
    samples, types, helps = Metrics(), {}, set()
    assert text.endswith("\n"), "the page must end with a line feed"
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"type of {name} twice"
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped"), line
            types[name] = kind
        elif line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert words, f"no help: {line}"
            helps.add(name)
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            name, inside, number = match.groups()
            labels = tuple(
                (n, re.sub(r'\\[\\"n]', lambda m: UNESCAPE[m.group()], v))
                for n, v in LABEL.findall(inside or "")
            )
            key = (name, labels)
            assert key not in samples, f"sample twice: {line}"
            samples[key] = float(number)
            family = re.sub(r"_(bucket|sum|count)$", "", name) if name not in types else name
            assert family in types and family in helps, f"no TYPE or HELP before {line!r}"
    return samples, types


def http_config(servers, port, pool=None, listener=None, server=None, **top):
    """The usual configuration: one HTTP listener on port, one pool with these server addresses."""
    return _config("http", servers, port, pool, listener, server, top)


def nfs_config(servers, port, pool=None, listener=None, server=None, **top):
    """The same for NFS."""
    return _config("nfs", servers, port, pool, listener, server, top)


def _config(protocol, servers, port, pool, listener, server, top):
    bind = port if isinstance(port, str) else f"127.0.0.1:{port}"
    return dict(
        {
            "workers": 1,
            "listeners": [
                dict(
                    {"name": "front", "bind": [bind], "protocol": protocol, "pool": "farm"},
                    **(listener or {}),
                )
            ],
            "pools": [
                dict(
                    {
                        "name": "farm",
                        "servers": [
                            s if isinstance(s, dict) else dict({"address": s}, **(server or {}))
                            for s in servers
                        ],
                    },
                    **(pool or {}),
                )
            ],
        },
        **top,
    )


class Spillway:
    """A running proxy. config: a dict (an admin socket and a short drain time are added), or YAML
    text."""

    def __init__(self, config, net=None, wait=True, limits=(), env=None, arguments=(), wrap=()):
        self.home = process.scratch("spillway-run-")
        self.socket = os.path.join(self.home, "control.sock")
        self.path = os.path.join(self.home, "spillway.yaml")
        self.write(config)
        argv = [*wrap, process.program("spillway"), "-f", self.path, *arguments]
        self.process = process.Process(
            "spillway", net.wrap(argv) if net else argv, limits=limits, env=env
        )
        self.stopped = False
        if wait:
            self.process.wait_listening(*self.ports())
            process.wait_until(
                lambda: self._control_listens() or not self.process.running(),
                "the control socket",
            )

    def _control_listens(self):
        """Its file is there before it listens; and a configuration may do without."""
        if self.socket not in self.text:
            return True
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.socket) == 0

    @property
    def pid(self):
        return self.process.pid

    def write(self, config):
        """Writes the configuration file (again); a reload is the caller's."""
        if isinstance(config, dict):
            config = dict(config)
            config.setdefault("admin", {}).setdefault("socket", self.socket)
            config.setdefault("drain-timeout", "5s")
            text = yaml.safe_dump(config, sort_keys=False)
        else:
            text = config.replace("@SOCKET@", self.socket)
        self.text = text
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.chmod(self.path + ".new", 0o644)
        os.rename(self.path + ".new", self.path)

    def ports(self):
        """Every TCP port the configuration binds."""
        ports = []
        for listener in yaml.safe_load(self.text)["listeners"]:
            binds = listener["bind"] if isinstance(listener["bind"], list) else [listener["bind"]]
            ports += [int(b.rsplit(":", 1)[1]) for b in binds if not b.startswith("unix:")]
        return ports

    def log(self):
        return self.process.log()

    def wait_log(self, text):
        self.process.wait_log(text)

    def resident_bytes(self):
        return process.resident_bytes(self.pid)

    # ------------------------------------------------ control

    def ctl(self, *arguments, check=True):
        """spillctl with these arguments; the completed process."""
        return process.run(
            [process.program("spillctl"), "-s", self.socket, *arguments], check=check
        )

    def show(self, what):
        """`spillctl show WHAT --json`, parsed."""
        return json.loads(self.ctl("show", what, "--json").stdout)

    def api(self, method, path, body=""):
        """One request to the control socket; (status, body text)."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(process.PATIENCE_S)
            sock.connect(self.socket)
            sock.sendall(
                f"{method} {path} HTTP/1.0\r\nHost: localhost\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            data = b""
            while chunk := sock.recv(65536):
                data += chunk
        head, _, rest = data.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), rest.decode()

    def metrics(self):
        """The metrics page, parsed."""
        status, text = self.api("GET", "/metrics")
        assert status == 200
        return parse_metrics(text)[0]

    def metric(self, name, **labels):
        return self.metrics()(name, **labels)

    def wait_metric(self, name, value, **labels):
        """Until the metric has that value (or satisfies value() when that is a function)."""
        seen = []

        def there():
            seen.append(self.metric(name, **labels))
            return value(seen[-1]) if callable(value) else seen[-1] == value

        try:
            process.wait_until(there, f"{name} {labels}")
        except AssertionError:
            raise AssertionError(f"{name} {labels}: wanted {value}, last saw {seen[-3:]}") from None

    def reload(self, config=None):
        """SIGHUP with a new configuration; waits until it is counted. True: it was taken."""
        if config is not None:
            self.write(config)
        before = self.reloads()
        self.process.send_signal(signal.SIGHUP)
        process.wait_until(lambda: self.reloads() != before, "the reload is counted")
        after = self.reloads()
        return after[0] > before[0]

    def reloads(self):
        """(reloads that worked, reloads that failed)."""
        metrics = self.metrics()
        return (
            metrics("spillway_config_reloads_total", result="ok"),
            metrics("spillway_config_reloads_total", result="failed"),
        )

    # ------------------------------------------------ the end

    def check_clean(self):
        report = SANITIZER_REPORT.search(self.log())
        if report:
            at = max(0, report.start() - 200)
            raise AssertionError("sanitizer report:\n" + self.log()[at : at + 8000])

    def stop(self, status=0):
        """SIGTERM; the proxy must end by itself with this status and no sanitizer's report."""
        if self.stopped:
            return
        self.stopped = True
        self.process.send_signal(signal.SIGTERM)
        got = self.process.wait()
        self.check_clean()
        assert got == status, f"spillway ended with {got}, not {status}:\n{self.log()[-3000:]}"

    def kill(self):
        """kill -9."""
        self.stopped = True
        self.process.kill()
