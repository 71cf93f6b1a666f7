# SPDX-License-Identifier: Apache-2.0
"""spillload's workload files, profiles and commands: what the origin counts is what the file says."""
import json
import os
import re
import signal
import socket
import time

import pytest

from lab import load, process


@pytest.fixture
def origin():
    service = load.Service()
    yield service
    service.close()


def spillload(*arguments, check=True):
    done = process.run([process.program("spillload"), *arguments], check=check)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def summary(*arguments):
    """A run's summary; what it wrote on standard error."""
    path = os.path.join(process.scratch(), "summary.json")
    done = spillload("--json", path, *arguments)
    with open(path) as file:
        return json.load(file), done.stderr


def written(text):
    path = os.path.join(process.scratch(), "workload.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


WORKLOAD = """
duration: 1s
seed: 5
defaults: {{rate: 100/s}}
flows:
  - name: kinds
    target: {http}
    rate: 400/s
    requests:
      - {{weight: 3, path: "/a?bytes=1000"}}
      - {{weight: 1, method: PUT, path: "/b/{{number}}", body: 2KiB}}
  - name: steps
    target: {http}
    steps: [{{rate: 300/s, for: 250ms}}, 0:250ms]
    arrival: constant
  - name: nfs
    proto: nfs
    target: {nfs}
    mix: {{getattr: 1, read: 1}}
"""


def test_flows_of_a_file_are_what_it_says(origin):
    path = written(WORKLOAD.format(http=origin.http, nfs=origin.nfs))
    figures, _ = summary("--workload", path, "--drain", "20s")
    flows = {flow["name"]: flow for flow in figures["flows"]}
    assert list(flows) == ["kinds", "steps", "nfs"]
    assert figures["seed"] == 5 and figures["measured_s"] == pytest.approx(1)
    for flow in flows.values():
        assert flow["outcomes"]["ok"] == flow["offered"], flow
    # 75 in each of two ON phases, the last of them perhaps not before the end.
    assert flows["steps"]["offered"] in (148, 149, 150)
    kinds = {kind["name"]: kind["outcomes"]["ok"] for kind in flows["kinds"]["kinds"]}
    assert set(kinds) == {"GET /a?bytes=1000", "PUT /b/{number}"}
    assert flows["kinds"]["bytes_out"] == 2048 * kinds["PUT /b/{number}"]
    # Draws of a fixed seed: of n requests a quarter, give or take 5 standard deviations.
    requests = flows["kinds"]["offered"]
    assert abs(kinds["PUT /b/{number}"] - requests / 4) < 5 * (requests * 3 / 16) ** 0.5
    assert {kind["name"] for kind in flows["nfs"]["kinds"] if kind["outcomes"]["ok"]} == {"getattr", "read"}


def test_the_same_seed_sends_the_same(origin):
    path = written(WORKLOAD.format(http=origin.http, nfs=origin.nfs))
    runs = [summary("--workload", path, "--drain", "20s")[0] for _ in range(2)]
    first, second = ([(flow["offered"], [(kind["name"], kind["outcomes"]["ok"]) for kind in flow["kinds"]])
                      for flow in run["flows"]] for run in runs)
    assert first == second
    other, _ = summary("--workload", path, "--drain", "20s", "--seed", "6")
    assert other["seed"] == 6
    assert [flow["offered"] for flow in other["flows"]] != [count for count, _ in first]


def test_the_command_line_has_the_last_word(origin):
    path = written(WORKLOAD.format(http=origin.http, nfs=origin.nfs))
    figures, _ = summary("--workload", path, "--duration", "500ms", "--set", "arrival=constant", "--scale", "2",
                         "--drain", "20s", "--flow", f"name=more,target={origin.http},rate=10/s")
    flows = {flow["name"]: flow["offered"] for flow in figures["flows"]}
    assert flows["kinds"] in (399, 400) and flows["nfs"] in (99, 100) and flows["more"] in (9, 10)
    assert flows["steps"] in (148, 149, 150)
    done = spillload("--workload", path, "--set", "op=getattr", check=False)
    assert done.returncode == 2 and "op and mix" in done.stderr


@pytest.mark.parametrize("text, told", [
    ("flows:\n  - rate: fast\n", ":2:11: rate=fast: expected a rate above 0"),
    ("flows:\n  - {rate: 1/s}\n", ":2:5: target=HOST:PORT is missing"),
    ("flows: [\n", ":2:1: no YAML"),
    ("flow: []\n", ":1:1: unknown key 'flow': expected duration"),
])
def test_a_wrong_file_is_status_2_with_file_line_and_column(text, told):
    path = written(text)
    done = spillload("--workload", path, check=False)
    assert done.returncode == 2
    assert f"spillload: {path}{told}" in done.stderr


def test_a_profile_runs_at_any_speed_and_scale(origin):
    figures, _ = summary("--profile", "square-wave", "--target", origin.http, "--speed", "1200", "--scale", "4",
                         "--set", "arrival=constant", "--drain", "20s")
    assert figures["measured_s"] == pytest.approx(2)
    # (15 + 35 + 15 + 150) * 4 of half a second each.
    assert figures["flows"][0]["offered"] in (429, 430)
    assert figures["flows"][0]["outcomes"]["ok"] == figures["flows"][0]["offered"]


def test_every_profile_is_listed_printed_and_a_workload():
    names = re.findall(r"^  ([a-z][a-z-]*) ", spillload("profiles").stdout, re.M)
    assert {"fstress-web", "fstress-mail", "random-read", "square-wave", "production-day", "big-spike", "dual-phase",
            "large-variation", "quick-varying", "slow-varying", "steep-tri-phase"} == set(names)
    for name in names:
        path = written(spillload("profiles", name).stdout)
        checked = [spillload(*option, "--target", "127.0.0.1:1", "--check").stdout
                   for option in (("--workload", path), ("--profile", name))]
        assert checked[0] == checked[1]
        assert "requests in the measured time" in checked[0] or "clients" in checked[0]
    done = spillload("profiles", "nothing", check=False)
    assert done.returncode == 2 and "there is no profile 'nothing'" in done.stderr


@pytest.mark.parametrize("name", ["fstress-web", "fstress-mail", "random-read"])
def test_nfs_profiles_make_their_set_and_load_it(origin, name):
    figures, _ = summary("--profile", name, "--target", origin.nfs, "--set", "files=40", "--set", "size=16KiB",
                         "--duration", "500ms", "--warmup", "0", "--drain", "20s")
    flow = figures["flows"][0]
    assert flow["offered"] > 0 and flow["outcomes"]["ok"] == flow["offered"], flow


def test_commands_are_listed_and_unknown_ones_refused():
    for arguments in (["help"], ["--help"]):
        text = spillload(*arguments).stdout
        for word in ("run", "compare", "merge", "plot", "sweep", "fileset", "trace", "fault", "profiles", "--workload",
                     "popularity"):
            assert re.search(rf"^  {word} ", text, re.M), word
    assert "usage: spillload fileset" in spillload("help", "fileset").stdout
    done = spillload("frobnicate", check=False)
    assert done.returncode == 2 and "there is no command 'frobnicate'" in done.stderr


def test_a_file_set_is_made_once():
    folder = process.scratch()
    options = ["--files", "50", "--depth=2", "--width", "3", "--size", "uniform:2KiB", "--threads", "3"]
    assert "50 files, 50 of them written now" in spillload("fileset", folder, *options).stdout
    found = {os.path.join(at, name): os.path.getsize(os.path.join(at, name))
             for at, _, names in os.walk(folder) for name in names if not name.startswith(".")}
    assert len(found) == 50 and len(set(found.values())) > 10
    assert "50 files, 0 of them written now" in spillload("fileset", folder, *options).stdout
    done = spillload("fileset", folder, "--files", "51", check=False)
    assert done.returncode == 1 and "another set" in done.stderr
    for wrong, told in ((["--files", "0"], "expected a number"), (["--hue", "5"], "unknown option --hue"),
                        (["--files"], "expected a value"), ([], "expected DIRECTORY and --files")):
        done = spillload("fileset", folder, *wrong, check=False)
        assert done.returncode == 2 and told in done.stderr


# ---------------------------------------------------------------- the course of a run

def test_an_interrupt_shows_the_figures_so_far(origin):
    run = load.Load([f"name=a,target={origin.http},rate=200/s"], duration="600s")
    process.wait_until(lambda: requests(origin) > 20, "the load has begun")
    flows = run.finish()
    assert flows["a"]["outcomes"]["ok"] > 10
    assert run.process.wait() == 0


def requests(service):
    import http.client

    connection = http.client.HTTPConnection(service.http, timeout=process.PATIENCE_S)
    connection.request("GET", "/_origin/stats")
    count = json.loads(connection.getresponse().read())["http"]["requests"]
    connection.close()
    return count


def test_two_signals_at_once_end_it_without_figures(origin):
    path = os.path.join(process.scratch(), "summary.json")
    run = process.Process("spillload", [process.program("spillload"), "--flow", f"target={origin.http},rate=200/s",
                                        "--duration", "600s", "--json", path])
    process.wait_until(lambda: requests(origin) > 20, "the load has begun")
    # Both are there when it wakes up.
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        run.send_signal(number)
    assert run.wait() == 130
    assert "aborted" in run.log() and "offered/s" not in run.log()


def test_machines_begin_at_one_moment(origin):
    at = int(time.time()) + 3
    path = os.path.join(process.scratch(), "summary.json")
    runs = [process.Process("spillload", [
        process.program("spillload"), "--flow", f"target={origin.http},rate=200/s", "--duration", "300ms",
        "--start-at", f"@{at}", "--json", f"{path}{number}"]) for number in range(2)]
    for number, run in enumerate(runs):
        assert run.wait() == 0
        with open(f"{path}{number}") as file:
            assert json.load(file)["began_unix_s"] >= at
    done = spillload("--flow", f"target={origin.http},rate=1/s", "--start-at", "@5", check=False)
    assert done.returncode == 2 and "still to come" in done.stderr
    done = spillload("--flow", f"target={origin.http},rate=1/s", "--start-at", "25:00:00", check=False)
    assert done.returncode == 2 and "HH:MM:SS" in done.stderr


def test_a_set_up_that_does_not_move_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        done = spillload("--flow", f"proto=nfs,target=127.0.0.1:{port},rate=1/s", check=False)
    assert done.returncode == 1
    assert "did not let us begin: nothing moved for 10 s" in done.stderr


def test_faults_go_with_the_run(origin):
    path = written(f"duration: 1s\nflows: [{{target: \"{origin.http}\", rate: 100/s}}]\n"
                   f"faults: [{{kind: pause, pid: {origin.process.pid}, at: 200ms, for: 300ms}}]\n")
    figures, said = summary("--workload", path, "--drain", "20s")
    assert figures["flows"][0]["outcomes"]["ok"] == figures["flows"][0]["offered"]
    assert "fault pause begins at" in said and "fault pause ends at" in said
    assert [mark["text"] for mark in figures["marks"]] == ["pause"]
    assert figures["marks"][0]["from_s"] >= 0.2 and figures["marks"][0]["to_s"] > figures["marks"][0]["from_s"]
    assert state(origin.process.pid) != "T"


def test_a_fault_that_never_begins_is_told(origin):
    early, late = (f"pause,pid={origin.process.pid},at={at},for=50ms" for at in ("100ms", "500s"))
    _, said = summary("--flow", f"target={origin.http},rate=100/s", "--duration", "1s", "--fault", early, "--fault", late)
    assert f"{late} did not begin" in said and f"{early} did not begin" not in said


def test_a_fault_that_is_under_way_ends_with_the_run(origin):
    run = process.Process("spillload", [
        process.program("spillload"), "--flow", f"target={origin.http},rate=100/s", "--duration", "600s", "--live=json",
        "--fault", f"pause,pid={origin.process.pid},for=500s"])
    process.wait_until(lambda: state(origin.process.pid) == "T", "the origin stands still")
    run.send_signal(signal.SIGINT)
    run.wait()
    assert state(origin.process.pid) != "T"


def test_faults_that_can_not_be_are_told_before_the_load(origin):
    before = requests(origin)
    for fault, status in (("pose,pid=1", 2), ("pause,pid=999999999", None)):
        done = spillload("--flow", f"target={origin.http},rate=100/s", "--fault", fault, check=False)
        assert done.returncode != 0 and (status is None or done.returncode == status)
        assert "spillload fault: " in done.stderr
    assert requests(origin) == before


# ---------------------------------------------------------------- the manual

MANUAL = os.path.join(os.path.dirname(__file__), "..", "..", "..", "conf", "man", "spillload.1")


def test_the_manual_names_every_key_option_and_profile():
    with open(MANUAL) as file:
        manual = file.read().replace("\\-", "-")
    text = spillload("--help").stdout
    run, keys = text.split("usage: spillload [run]")[1].split("Keys of a flow")
    for option in re.findall(r"^  (--[a-z-]+)", run, re.M):
        assert re.search(rf"^\.BR?I? {option}\b", manual, re.M), option
    for key in re.findall(r"^  ([a-z-]+)  ", keys, re.M):
        assert re.search(rf"^\.BR?I? (.*[ ,])?{key}=", manual, re.M) or f"\n.BI {key}= " in manual, key
    for name in re.findall(r"^  ([a-z][a-z-]*) ", spillload("profiles").stdout, re.M):
        assert name in manual, name


def test_the_manual_s_workload_is_one():
    with open(MANUAL) as file:
        example = re.search(r"^\.RS\n(duration:.*?)^\.RE$", file.read(), re.M | re.S).group(1)
    told = spillload("--workload", written(example), "--check").stdout
    assert "flow tenants: 127.0.0.1:8080, open loop, about 24000 requests" in told
    assert "flow array: 127.0.0.1:2049, closed loop, 8 clients" in told
    assert "fault pause,pid=4711,at=30s,for=2s" in told
