# SPDX-License-Identifier: Apache-2.0
"""Our load generator and embedded origin as children of a test."""
import json
import os
import re

from . import process


class Service:
    """spillorigin: `http` and `nfs` are its addresses."""

    def __init__(self, slots=8, service="0", distribution="fixed", extra=()):
        self.process = process.Process(
            "spillorigin",
            [
                process.program("spillorigin"),
                "--http",
                "127.0.0.1:0",
                "--nfs",
                "127.0.0.1:0",
                "--slots",
                slots,
                "--service",
                service,
                "--distribution",
                distribution,
                *extra,
            ],
        )
        self.process.wait_log("ready")
        found = re.search(r"listening http=(\S+) nfs=(\S+)", self.process.log())
        self.http, self.nfs = found.groups()

    def close(self):
        self.process.kill()


class Load:
    """spillload with these --flow texts; result() waits for its end: {flow name: figures}."""

    def __init__(self, flows, duration="30s", extra=()):
        self.path = os.path.join(process.scratch(), "load.json")
        argv = [process.program("spillload"), "--duration", duration, "--json", self.path, *extra]
        for flow in flows:
            argv += ["--flow", flow]
        self.process = process.Process("spillload", argv)

    def result(self, deadline_s=120):
        status = self.process.wait(deadline_s)
        assert os.path.exists(self.path), f"spillload ended with {status}:\n{self.process.log()}"
        with open(self.path) as file:
            return {flow["name"]: flow for flow in json.load(file)["flows"]}

    def finish(self):
        """Ends the load now; its figures so far."""
        import signal

        self.process.send_signal(signal.SIGINT)
        return self.result()

    def close(self):
        self.process.kill()
