#!/usr/bin/env python3
"""every bench's results in one table; the exit status says whether every goal is met"""
# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import sys

from report import table


def main():
    if len(sys.argv) != 2:
        print("usage: table.py FOLDER (of the NAME.json files)", file=sys.stderr)
        return 2
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    if not files:
        print(f"{sys.argv[1]}: no results: run make bench",
              file=sys.stderr)
        return 2
    rows = []
    for path in files:
        for row in json.loads(path.read_text()):
            rows.append({**row, "name": f"{path.stem}: {row['name']}"})
    print(table(rows))
    met = sum(row["ok"] is True for row in rows)
    missed = [row["name"] for row in rows if row["ok"] is False]
    open_goals = [row["name"] for row in rows if row["goal"] and row["ok"] is None]
    print(f"\n{met} goals met, {len(missed)} missed, {len(open_goals)} not measured")
    for name in missed:
        print(f"missed: {name}")
    for name in open_goals:
        print(f"not measured: {name}")
    return 1 if missed or open_goals else 0


if __name__ == "__main__":
    sys.exit(main())
