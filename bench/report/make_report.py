#!/usr/bin/env python3
"""a report of what the programs do on this machine: pictures, tables and the commands, as HTML"""
# SPDX-License-Identifier: Apache-2.0
#
# usage: make_report.py FOLDER      FOLDER/index.html; what is in FOLDER/data and /pictures is replaced
#
# Environment, beside that of ../lab.py:
#     SPILLWAY_REPORT_SECONDS   seconds of the longest run (12); the others keep their proportion
#     SPILLWAY_REPORT_ONLY      comma-separated names of sections: only these

import os
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from lab import BenchError, Lab, progress  # noqa: E402
from page import Page  # noqa: E402
from runs import Runs  # noqa: E402
import sections  # noqa: E402

MEASURED = {"isolation": sections.isolation, "depth": sections.depth, "latency": sections.latency,
            "generator": sections.generator, "simulation": sections.simulation,
            "admission": sections.admission, "optional": sections.optional}


def main():
    if len(sys.argv) != 2:
        print("usage: make_report.py FOLDER", file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1]).resolve()
    for part in ("data", "pictures"):
        shutil.rmtree(folder / part, ignore_errors=True)
    only = [name for name in os.environ.get("SPILLWAY_REPORT_ONLY", "").split(",") if name]
    began, load_before = time.time(), os.getloadavg()[0]
    page = Page("Spillway, measured",
                "What the request scheduler and its load generator do on this machine: every "
                "figure was measured while this page was made, with the commands that are shown "
                "beside it.")
    for name, section in MEASURED.items():
        if only and name not in only:
            continue
        progress(f"{name} ...")
        with Lab() as lab:
            section(page, Runs(lab, folder))
        progress("")
        print(f"{name}: {time.time() - began:.0f} s", flush=True)
    sections.machine(page, began, load_before)
    page.write(folder / "index.html")
    print(f"written: {folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"make report: {error}")
