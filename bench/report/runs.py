# SPDX-License-Identifier: Apache-2.0
"""What the sections measure with: services and proxies started for them, runs of spillload and
spillsim, and of each the command that repeats it, with paths below the report's folder.

    FOLDER/data/        summaries, sweeps, configurations
    FOLDER/pictures/    what spillload plot drew
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import peers  # noqa: E402
from lab import LOAD_CORE, PROXY_CORE, BenchError, free_port, pin, program, tool  # noqa: E402

from page import Figure  # noqa: E402

# Seconds of the longest run; the others keep their proportion to it.
LONGEST_S = float(os.environ.get("SPILLWAY_REPORT_SECONDS", "12"))
USUAL_S = 12
PICTURE = (960, 480)


def seconds(usual):
    """The length of a run that usually takes so many seconds."""
    return max(1, round(usual * LONGEST_S / USUAL_S))


def few(steps):
    """The values of a sweep: all of them, or in a short report the first and every third."""
    return steps if LONGEST_S >= 4 else steps[::3]


def readable(words):
    """A command for people: options that may be many begin a line."""
    text = ""
    for word in map(str, words):
        text += (" \\\n    " if word in ("--flow", "--json", "--") else " ") + shlex.quote(word)
    return text.strip()


class Runs:
    """Everything one section runs; `commands` and `files` are what was used, in order."""

    def __init__(self, lab, folder):
        self.lab, self.folder = lab, folder
        self.commands, self.files, self.notes = [], [], []
        for part in ("data", "pictures"):
            (folder / part).mkdir(parents=True, exist_ok=True)

    def need(self, name):
        path = program(name) or tool(name)
        if not path:
            raise BenchError(f"{name} is missing: run make first")
        return path

    # ------------------------------------------------------------ services and proxies

    def started(self, words, core):
        self.commands.append(readable(words) + " &")
        return self.lab.start(words[0], [self.need(words[0]), *map(str, words[1:])], core,
                              cwd=self.folder)

    def origin(self, *options):
        """spillorigin on both protocols; the result has `ports`."""
        ports = {"http": free_port(), "nfs": free_port()}
        child = self.started(["spillorigin", "--http", f"127.0.0.1:{ports['http']}", "--nfs",
                              f"127.0.0.1:{ports['nfs']}", *options], LOAD_CORE)
        child.wait_for_line("ready")
        child.ports = ports
        return child

    def configured(self, name, text, words):
        """A proxy by its configuration, which is kept with the data."""
        file = f"data/{name}"
        (self.folder / file).write_text(text)
        self.files.append(file)
        return self.started([*words, file], PROXY_CORE)

    def spillway(self, name, listeners, pools, ports):
        """Our proxy from lists of its configuration, as YAML text."""
        text = peers.SPILLWAY.format(listeners=listeners.rstrip(), pools=pools.rstrip())
        child = self.configured(f"{name}.yaml", text, ["spillway", "-f"])
        for port in ports.values():
            child.wait_for_port(port)
        child.ports = ports
        return child

    def haproxy(self, name, text, port):
        """HAProxy, or None when it is not installed."""
        if not tool("haproxy"):
            return None
        child = self.configured(f"{name}.cfg", text, ["haproxy", "-db", "-f"])
        return child.wait_for_port(port)

    def stop(self, child):
        if child:
            self.lab.stop(child)
            self.commands.append(f"kill %{child.name}")

    # ------------------------------------------------------------ loads

    def spillload(self, words, file, limit_s):
        """Runs it to its end; the JSON file it wrote, parsed. Warnings become notes."""
        self.commands.append(readable(["spillload", *words]))
        self.files.append(file)
        path = self.folder / file
        path.unlink(missing_ok=True)
        done = subprocess.run([self.need("spillload"), *map(str, words)], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=limit_s + 60, preexec_fn=lambda: pin(LOAD_CORE))
        # Status 1 may say that a flow had no good reply, which is a result.
        if done.returncode not in (0, 1) or not path.exists():
            raise BenchError(f"{self.commands[-1]}: status {done.returncode}\n"
                             f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        self.notes += [f"{file}: {line.removeprefix('warning: ')}"
                       for line in done.stderr.splitlines() if line.startswith("warning: ")]
        return json.loads(path.read_text())

    def load(self, name, label, flows, duration_s, warmup_s=1):
        """A run of flows; the summary is data/NAME.json. Returns that path."""
        file = f"data/{name}.json"
        words = [word for flow in flows for word in ("--flow", flow)]
        self.spillload(["run", *words, "--duration", f"{duration_s}s", "--warmup", f"{warmup_s}s",
                        "--seed", "7", "--live=off", "--label", label, "--json", file],
                       file, duration_s + warmup_s)
        return file

    def sweep(self, name, vary, flows, duration_s, steps):
        """spillload sweep; data/NAME.json, and it parsed."""
        file = f"data/{name}.json"
        words = [word for flow in flows for word in ("--flow", flow)]
        return file, self.spillload(
            ["sweep", "--vary", vary, "--json", file, "--", *words, "--duration", f"{duration_s}s",
             "--warmup", "1s", "--seed", "7"], file, (duration_s + 2) * steps)

    def join_sweep(self, name, parameter, steps):
        """Summaries of runs that differ in a parameter of something else than the load, as the
        file of a sweep. `steps` are (value, path)."""
        file = f"data/{name}.json"
        joined = {"format": 1, "kind": "sweep", "parameter": parameter, "command": None,
                  "knee": None,
                  "steps": [{"text": str(value), "value": value,
                             "summary": json.loads((self.folder / path).read_text())}
                            for value, path in steps]}
        (self.folder / file).write_text(json.dumps(joined))
        self.files.append(file)
        return file

    def simulate(self, name, words):
        """A run of spillsim; its summary is data/NAME.json. Returns that path."""
        file = f"data/{name}.json"
        command = [*words, "--json", file]
        self.commands.append(readable(["spillsim", *command]))
        self.files.append(file)
        subprocess.run([self.need("spillsim"), *command], cwd=self.folder, timeout=120, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return file

    # ------------------------------------------------------------ what is shown of it

    def figure(self, file, key, decimals=1, scale=1):
        return Figure(self.folder, file, key, decimals, scale)

    def plot(self, section, kind, files, name, words, *options):
        """Draws pictures/NAME.svg and adds it to the section with its command."""
        picture = f"pictures/{name}.svg"
        size = "x".join(map(str, PICTURE))
        command = ["plot", kind, *files, "-o", picture, "--size", size, *options]
        done = subprocess.run([self.need("spillload"), *command], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode != 0 or not (self.folder / picture).exists():
            raise BenchError(f"spillload {' '.join(command)}: {done.stderr}")
        section.picture(picture, words, PICTURE, [readable(["spillload", *command])])

    def tell(self, section):
        """Ends a section: what has to be known, and how to repeat it."""
        if self.notes:
            section.notes(f"The load generator has {len(self.notes)} warnings about these runs: "
                          "see them before trusting the high percentiles.", self.notes)
        section.commands("Measure it again (in this report's folder, programs in PATH)",
                         self.commands, dict.fromkeys(self.files))
