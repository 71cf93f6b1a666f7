# SPDX-License-Identifier: Apache-2.0
"""`spillway -c`: every mistake with its file, line, column, key and what was expected; the samples
are right."""
import glob
import os
import re

import pytest

from lab import process

GOOD = """\
listeners:
  - name: web
    bind: ["127.0.0.1:18080"]
    protocol: http
    pool: farm
pools:
  - name: farm
    servers:
      - { address: "127.0.0.1:18081", depth: 8 }
    scheduler: { algorithm: sfqd }
    flows:
      - { name: gold, weight: 2, match: { header: { X-Tenant: gold } } }
      - { name: rest, weight: 1, by: client-address }
"""


def check(text, *options):
    """(exit status, path, output) of spillway -c on the text."""
    path = os.path.join(process.scratch(), "file.yaml")
    with open(path, "w") as file:
        file.write(text)
    done = process.run([process.program("spillway"), "-c", "-f", path, *options], check=False)
    return done.returncode, path, done.stdout + done.stderr


def swapped(old, new):
    assert old in GOOD, old
    return GOOD.replace(old, new, 1)


def place(text, mark):
    """(line, column) of mark in text, from 1."""
    before = text[: text.index(mark)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def test_good_configuration_passes():
    status, _, output = check(GOOD)
    assert status == 0, output


@pytest.mark.parametrize(
    "sample", sorted(glob.glob(os.path.join(process.ROOT, "conf", "*.yaml"))), ids=os.path.basename
)
def test_samples_pass(sample):
    done = process.run([process.program("spillway"), "-c", "-f", sample], check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_samples_for_farm_array_and_demo():
    names = {
        os.path.basename(path) for path in glob.glob(os.path.join(process.ROOT, "conf", "*.yaml"))
    }
    assert {"web-farm.yaml", "storage-array.yaml", "demo.yaml"} <= names


# name: (text, where the finger must point, words of which one must be in the message)
MISTAKES = {
    "unknown key": (swapped("    pool: farm\n", "    pol: farm\n"), "pol", ["pool"]),
    "unknown key at the top": (GOOD + "wrokers: 2\n", "wrokers", ["workers"]),
    "unknown key in a flow": (swapped("weight: 2,", "wieght: 2,"), "wieght", ["weight"]),
    "duplicate key": (
        swapped("    protocol: http\n", "    protocol: http\n    protocol: nfs\n"),
        "protocol: nfs",
        ["protocol"],
    ),
    "duplicate pool": (
        GOOD + '  - name: farm\n    servers: [ { address: "127.0.0.1:1" } ]\n',
        None,
        ["farm"],
    ),
    "duplicate flow": (swapped("name: rest", "name: gold"), None, ["gold"]),
    "duplicate listener": (
        swapped(
            "pools:\n",
            '  - { name: web, bind: ["127.0.0.1:18090"], protocol: http, pool: farm }\npools:\n',
        ),
        None,
        ["web"],
    ),
    "missing pool": (swapped("pool: farm", "pool: form"), "form", ["farm"]),
    "zero weight": (swapped("weight: 2", "weight: 0"), "0, match", ["weight"]),
    "weight too large": (
        swapped("weight: 2", "weight: 1000001"),
        "1000001",
        ["1000000", "1,000,000"],
    ),
    "negative weight": (swapped("weight: 2", "weight: -2"), "-2", ["weight"]),
    "weight is a word": (
        swapped("weight: 2", "weight: heavy"),
        "heavy",
        ["heavy", "number", "integer"],
    ),
    "bad address": (swapped("127.0.0.1:18081", "127.0.0.1"), None, ["port"]),
    "port out of range": (swapped("127.0.0.1:18081", "127.0.0.1:70000"), None, ["70000", "65535"]),
    "address without host": (swapped('"127.0.0.1:18081"', '":18081"'), None, ["address"]),
    "bad IPv6 address": (swapped("127.0.0.1:18081", "[fe80::zz]:80"), None, ["fe80::zz"]),
    "bad unit": (GOOD + "drain-timeout: 30 parsecs\n", "30 parsecs", ["parsecs", "unit", "ms"]),
    "time without a unit": (GOOD + "drain-timeout: 30\n", "30", ["s", "unit"]),
    "bad size": (
        swapped("    pool: farm\n", "    pool: farm\n    limits: { header: 3 furlongs }\n"),
        "3 furlongs",
        ["KiB"],
    ),
    "bad prefix": (
        swapped("header: { X-Tenant: gold }", "client: 10.0.0.0/33"),
        "10.0.0.0/33",
        ["10.0.0.0/33"],
    ),
    "unknown protocol": (swapped("protocol: http", "protocol: gopher"), "gopher", ["nfs"]),
    "unknown algorithm": (swapped("sfqd", "lottery"), "lottery", ["fifo", "sfqd"]),
    "limit below the reservation": (
        swapped("{ algorithm: sfqd }",
                "mclock\n    flows: [ { name: a, reservation: 20/s, limit: 10/s } ]"),
        "10/s",
        ["below the reservation", "20/s"],
    ),
    "empty list of servers": (
        swapped('servers:\n      - { address: "127.0.0.1:18081", depth: 8 }', "servers: []"),
        None,
        ["servers"],
    ),
    "no listeners": (GOOD[GOOD.index("pools:") :], None, ["listeners"]),
    "zero depth": (swapped("depth: 8", "depth: 0"), None, ["depth"]),
    "list where a mapping belongs": (
        swapped("scheduler: { algorithm: sfqd }", "scheduler: [ sfqd ]"),
        None,
        ["scheduler"],
    ),
    "mapping where a word belongs": (
        swapped("protocol: http", "protocol: { a: b }"),
        None,
        ["protocol"],
    ),
    "no name": (swapped("  - name: farm\n    servers", "  - servers"), None, ["name"]),
    "by header without a name": (swapped("by: client-address", "by: header"), None, ["header"]),
}


@pytest.mark.parametrize("case", MISTAKES, ids=lambda name: name.replace(" ", "_"))
def test_mistake_is_said_with_its_place(case):
    text, mark, words = MISTAKES[case]
    status, path, output = check(text)
    assert status != 0, f"accepted:\n{text}"
    found = re.findall(rf"^{re.escape(path)}:(\d+):(\d+): (.+)$", output, re.M)
    assert found, f"no FILE:LINE:COLUMN in:\n{output}"
    assert any(word in message for _, _, message in found for word in words), output
    if mark:
        assert place(text, mark)[0] in [
            int(line) for line, _, _ in found
        ], f"{output}\nnot at line {place(text, mark)} of:\n{text}"


def test_column_points_at_the_key_or_its_value():
    text = swapped("weight: 2", "weight: 0")
    _, path, output = check(text)
    column = int(re.search(rf"^{re.escape(path)}:\d+:(\d+): ", output, re.M).group(1))
    start = place(text, "weight: 0")[1]
    assert start <= column <= start + len("weight: "), output


def test_all_mistakes_are_said_in_one_run():
    text = (
        swapped("pool: farm", "pool: form")
        .replace("weight: 2", "weight: 0")
        .replace("18081", "99999")
    )
    _, path, output = check(text)
    assert len(re.findall(rf"^{re.escape(path)}:\d+:\d+: ", output, re.M)) >= 3, output


def test_yaml_syntax_error_has_its_place():
    status, path, output = check("listeners:\n  - name: [web\npools: }\n")
    assert status != 0
    assert re.search(rf"^{re.escape(path)}:[23]:\d+: ", output, re.M), output


def test_unreadable_file_is_said():
    done = process.run(
        [process.program("spillway"), "-c", "-f", "/nonexistent/spillway.yaml"], check=False
    )
    assert done.returncode != 0
    assert "/nonexistent/spillway.yaml" in done.stdout + done.stderr
    assert "No such file" in done.stdout + done.stderr


def test_unknown_name_is_said():
    status, _, output = check(swapped("127.0.0.1:18081", "no-such-host.invalid:80"))
    assert status != 0 and "no-such-host.invalid" in output


def test_wrong_configuration_does_not_start():
    path = os.path.join(process.scratch(), "file.yaml")
    with open(path, "w") as file:
        file.write(swapped("weight: 2", "weight: 0"))
    done = process.run([process.program("spillway"), "-f", path], check=False)
    assert done.returncode != 0 and f"{path}:" in done.stderr


def test_help_and_version_and_reference():
    for option in ("--help", "--version", "--help-config"):
        done = process.run([process.program("spillway"), option])
        assert done.stdout.strip(), option
    assert "drain-timeout" in done.stdout and "weight" in done.stdout


def test_unknown_option_is_said_and_fails():
    done = process.run([process.program("spillway"), "--frobnicate"], check=False)
    assert done.returncode != 0 and "frobnicate" in done.stderr
