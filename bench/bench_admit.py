#!/usr/bin/env python3
"""the admission policies alone: ns per request, and per interval"""
# SPDX-License-Identifier: Apache-2.0

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict

from lab import BenchError, PROXY_CORE, pin, program, progress, wanted
from report import Report

ROUNDS = int(os.environ.get("SPILLWAY_BENCH_ROUNDS", "7"))
RUN_LIMIT_S = 120
MOST_NS = 20
INTERVAL_MOST_NS = 1000
COSTS = {"equal": "", "random": ", costs 1 to 64"}


def run():
    path = program("admitbench")
    if not path:
        raise BenchError("admitbench is missing: run make first")
    done = subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=RUN_LIMIT_S, preexec_fn=lambda: pin(PROXY_CORE), check=False)
    if done.returncode != 0:
        raise BenchError(f"{path}: status {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    report = Report("admit", "the admission policies alone, offered 1.2 times what is served: ns per "
                             "offer + dispatch + complete, and per interval's end, one thread")
    if wanted("decision:") or wanted("interval:"):
        results = defaultdict(list)
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}")
            for result in run():
                results[result["policy"], result["costs"]].append(result)
        progress("")
        for title, key, most in (("decision", "ns", MOST_NS),
                                 ("interval", "interval_ns", INTERVAL_MOST_NS)):
            for (policy, costs), rounds in results.items():
                report.add(f"{title}: {policy}{COSTS[costs]}",
                           statistics.median(one[key] for one in rounds), "ns",
                           goal=f"value <= {most}")
    report.note("an interval's end is a difference of two times, for 20 requests: its error is "
                "twenty times theirs")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench-admit: {error}")
