# SPDX-License-Identifier: Apache-2.0
"""Results of a bench: one table for people, one file for programs.

The file is a list of rows, each with the keys
    name        what was measured
    value       our figure (median of the rounds), null when we were not measured
    unit        its unit
    peer        whom it is compared with, or null
    peer_value  the peer's figure
    ratio       ours by the peer's (median of the rounds' ratios), or null
    goal        what must hold, such as "ratio <= 0.95" or "value <= 4.3", or null: for information
    ok          whether it does; null without a goal or without a figure
A row that is also held against a figure that was not measured in this run has three more:
    reference        whose figure it is
    reference_value  the figure
    reference_ratio  ours by it
and its goal may be on "reference_ratio".
"""

import json
import operator
import os
import pathlib
import platform
import re
import subprocess

from lab import ROOT, program, tool

_JUDGES = {"<=": operator.le, ">=": operator.ge}


def judge(goal, value, ratio, reference_ratio=None):
    """True or false as the goal says; None where there is no goal or nothing to judge."""
    if not goal:
        return None
    subject, relation, limit = goal.split()
    figure = {"value": value, "ratio": ratio, "reference_ratio": reference_ratio}[subject]
    return None if figure is None else _JUDGES[relation](figure, float(limit))


class Report:
    """The rows of one bench."""

    def __init__(self, name, title):
        self.name = name
        self.title = title
        self.rows = []
        self.notes = []
        self.matrices = []

    def add(self, name, value, unit, peer=None, peer_value=None, ratio=None, goal=None,
            reference=None):
        """Adds a row; `reference` is (name, figure) of one that was measured elsewhere."""
        row = {"name": name, "value": rounded(value), "unit": unit, "peer": peer,
               "peer_value": rounded(peer_value), "ratio": rounded(ratio), "goal": goal}
        reference_ratio = None
        if reference:
            reference_ratio = None if value is None else value / reference[1]
            row.update(reference=reference[0], reference_value=rounded(reference[1]),
                       reference_ratio=rounded(reference_ratio))
        row["ok"] = judge(goal, value, ratio, reference_ratio)
        self.rows.append(row)

    def note(self, text):
        self.notes.append(text)

    def add_matrix(self, title, columns, lines):
        """A table of its own, printed before the rows: `lines` are (name, figures)."""
        self.matrices.append((title, columns, lines))

    def finish(self):
        """Writes NAME.json and prints the table. Returns the bench's exit status: 0, measured.

        Where there are matrices, they show every figure and the table the rows with a goal alone.
        """
        folder = pathlib.Path(os.environ.get("SPILLWAY_RESULTS", ROOT / "build" / "bench"))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self.rows, indent=1) + "\n")
        print(f"\n{self.title}\n{machine()}\n")
        for matrix in self.matrices:
            print(matrix_text(*matrix) + "\n")
        print(table([row for row in self.rows if row["goal"] or not self.matrices]))
        for note in self.notes:
            print(f"note: {note}")
        print(f"written: {path}")
        return 0


def rounded(figure):
    return None if figure is None else float(f"{figure:.5g}")


def table(rows):
    """Rows as text in aligned columns."""
    heads = ["measure", "ours", "unit", "peer", "peer's", "ratio", "goal", "ok"]
    lines = [heads] + [[
        row["name"], shown(row["value"]), row["unit"], row["peer"] or "-",
        shown(row.get("peer_value")), shown(row["ratio"], 3), row["goal"] or "-",
        {True: "yes", False: "NO", None: "-"}[row["ok"]]] for row in rows]
    numbers = [1, 4, 5]
    if any(row.get("reference") for row in rows):
        add_references(lines, rows)
        numbers += [7, 8]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = []
    for line in lines:
        cells = [cell.rjust(width) if i in numbers else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        text.append("  ".join(cells).rstrip())
    text.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(text)


def matrix_text(title, columns, lines):
    """Names down, columns across."""
    cells = [[title, *columns]] + [[name, *map(shown, figures)] for name, figures in lines]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    text = ["  ".join([line[0].ljust(widths[0])] +
                      [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]).rstrip()
            for line in cells]
    text.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(text)


def add_references(lines, rows):
    """Three columns before the goal, for figures that are not of this run."""
    lines[0][6:6] = ["reference", "its", "ratio"]
    for line, row in zip(lines[1:], rows):
        line[6:6] = [row.get("reference") or "-", shown(row.get("reference_value")),
                     shown(row.get("reference_ratio"), 3)]


def shown(figure, decimals=None):
    if figure is None:
        return "-"
    if decimals is not None:
        return f"{figure:.{decimals}f}"
    if abs(figure) >= 1000:
        return f"{figure:,.0f}"
    return f"{figure:.3g}" if abs(figure) < 10 else f"{figure:.1f}"


def machine():
    """One paragraph on what all this was measured."""
    cpu = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    versions = [version for version in (
        first_line([program("spillway"), "-V"], "spillway"),
        first_line([tool("haproxy"), "-v"], "HAProxy"),
        first_line([tool("nginx"), "-v"], "nginx")) if version]
    load = os.getloadavg()[0]
    congestion = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return (f"on {cpu}, {os.cpu_count()} cores, Linux {platform.release()}, TCP {congestion}; "
            f"{', '.join(versions)}; load average at the end {load:.1f}")


def first_line(command, name):
    """NAME VERSION as the program itself says it, or None when it is missing."""
    if not command[0]:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return name
    version = re.search(r"\d+\.\d+[\w.+-]*", (done.stdout + done.stderr).split("\n", 1)[0])
    return f"{name} {version.group(0)}" if version else name
