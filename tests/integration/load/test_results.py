# SPDX-License-Identifier: Apache-2.0
"""What spillload leaves behind and what is done with it: files, compare, merge, plot and sweep, against
nginx and spillorigin."""
import csv
import http.client as client
import json
import math
import os
import pty
import signal
import subprocess
import xml.etree.ElementTree

import pytest

from lab import http, process
from lab.load import Service

SPILLLOAD = "spillload"


@pytest.fixture(scope="module")
def nginx():
    server = http.Nginx()
    server.put("page", b"x" * 1000)
    yield server
    server.close()


@pytest.fixture(scope="module")
def service():
    """4 slots of 2 ms each: 2000 requests a second at most."""
    server = Service(slots=4, service="2ms")
    yield server
    server.close()


def spillload(*arguments, check=True, **options):
    done = process.run([process.program(SPILLLOAD), *arguments], check=check, **options)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def new_path(name):
    return os.path.join(process.scratch(), name)


def load(target, *options, rate="200/s", duration="2s", name="web"):
    """A run; its summary and where it is."""
    path = new_path("run.json")
    flow = f"name={name},target={target},rate={rate},arrival=constant"
    done = spillload("run", "--flow", flow, "--duration", duration, "--json", path, *options)
    with open(path) as file:
        return json.load(file), path, done


@pytest.fixture(scope="module")
def runs(service):
    """Paths of two runs of one flow, the second at the same rate with another seed."""
    return [load(service.http, "--seed", seed, "--label", f"run {seed}", duration="3s")[1] for seed in "12"]


def quantile(histogram, share):
    """As the program does it: the smallest bucket up to which there are enough, by its start."""
    wanted, seen = math.ceil(share * sum(histogram["count"])), 0
    for start, count in zip(histogram["start_ns"], histogram["count"]):
        seen += count
        if seen >= wanted:
            return start / 1e6
    raise AssertionError("an empty histogram")


# ---------------------------------------------------------------- the files of a run


def test_json_csv_and_histogram_tell_the_same(nginx):
    lines, buckets = new_path("run.csv"), new_path("run.hgrm")
    summary, _, _ = load(f"127.0.0.1:{nginx.port}", "--csv", lines, "--histogram",
                         buckets, "--label", "nginx", "--warmup", "1s", duration="2s")
    flow = summary["flows"][0]
    assert summary["format"] == 1 and summary["kind"] == "run" and summary["label"] == "nginx"
    assert summary["machine"]["cpus"] == os.cpu_count()
    assert "--warmup 1s" in summary["command"]
    assert flow["outcomes"]["ok"] == flow["offered"] == flow["latency"]["count"]
    histogram = flow["latency"]["histogram"]
    assert sum(histogram["count"]) == flow["latency"]["count"]
    for key, share in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99)):
        assert flow["latency"][key] == pytest.approx(quantile(histogram, share), rel=0.001)

    with open(lines, newline="") as file:
        rows = list(csv.DictReader(file))
    series = flow["series"]
    assert [row["flow"] for row in rows] == ["web"] * 3
    assert [float(row["time_s"]) for row in rows] == pytest.approx(series["time_s"], rel=1e-5)
    assert [int(row["done"]) for row in rows] == series["done"]
    assert [int(row["offered"]) for row in rows] == series["offered"]
    assert [float(row["p99_ms"]) for row in rows] == pytest.approx(series["p99_ms"], rel=1e-4)
    # 3 s at 200/s, but for what was in flight at the end.
    assert 0 < sum(series["done"]) <= sum(series["offered"]) <= 600

    with open(buckets) as file:
        text = [line.split() for line in file if line[0] not in "#\n"]
    assert text[0] == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    counts = [int(line[2]) for line in text[1:]]
    assert counts == sorted(counts) and counts[-1] == flow["latency"]["count"]
    assert len(counts) == len(histogram["count"])
    assert float(text[-1][0]) == pytest.approx(flow["latency"]["max_ms"]) and len(text[-1]) == 3


@pytest.mark.parametrize("option", ["--json", "--csv", "--histogram"])
def test_a_path_that_cannot_be_written_is_told_before_the_load(service, option):
    path = "/nonexistent/folder/file"
    before = stats(service)["requests"]
    done = spillload("--flow", f"target={service.http},rate=100/s", "--duration", "60s", option, path,
                     check=False)
    assert done.returncode in (1, 2)
    assert path in done.stderr and "No such file" in done.stderr
    assert stats(service)["requests"] == before


def stats(service):
    connection = client.HTTPConnection(service.http, timeout=process.PATIENCE_S)
    connection.request("GET", "/_origin/stats")
    text = connection.getresponse().read()
    connection.close()
    return json.loads(text)["http"]


@pytest.mark.parametrize("option", ["--json", "--csv", "--histogram"])
def test_a_full_disk_is_told_once(service, option):
    done = spillload("--flow", f"target={service.http},rate=100/s", "--duration", "2s", option, "/dev/full",
                     check=False)
    assert done.returncode == 1
    assert done.stderr.count("/dev/full") == 1 and "No space left" in done.stderr
    assert "flow1" in done.stdout, "the table is shown nevertheless"


def test_what_is_said_does_not_go_into_the_files(service):
    """Closed, standard output and error leave their numbers to the first files that are opened."""
    path, lines = new_path("run.json"), new_path("run.csv")
    argv = [process.program(SPILLLOAD), "--flow", f"target={service.http},rate=100/s,timeout=1ms", "--duration", "1s",
            "--drain", "0s", "--json", path, "--csv", lines]
    process.run(["/bin/sh", "-c", '"$@" <&- >&- 2>&-', "sh", *argv], check=False)
    with open(path) as file:
        assert json.load(file)["kind"] == "run"
    with open(lines, newline="") as file:
        assert {row["flow"] for row in csv.DictReader(file)} == {"flow1"}


def test_a_killed_run_leaves_the_file_that_was_there(service):
    path = new_path("run.json")
    with open(path, "w") as file:
        file.write("old")
    run = process.Process("spillload", [process.program(SPILLLOAD), "--flow", f"target={service.http},rate=50/s",
                                        "--duration", "60s", "--json", path, "--live=text"])
    run.wait_log("1s  flow1")
    run.kill()
    with open(path) as file:
        assert file.read() == "old"


def test_an_interrupted_run_keeps_its_figures(service):
    path = new_path("run.json")
    run = process.Process("spillload", [process.program(SPILLLOAD), "--flow", f"target={service.http},rate=50/s",
                                        "--duration", "60s", "--json", path, "--live=text"])
    run.wait_log("1s  flow1")
    run.send_signal(signal.SIGINT)
    assert run.wait() == 0, run.log()
    with open(path) as file:
        summary = json.load(file)
    flow = summary["flows"][0]
    assert flow["offered"] > 0 and 0.9 < summary["measured_s"] < 59
    assert sum(flow["series"]["offered"]) == flow["offered"], "the second that was cut short is there"


@pytest.mark.parametrize("duration, seconds", [("300ms", 1), ("1400ms", 2), ("2s", 2)])
def test_the_seconds_are_all_of_the_measured_time(service, duration, seconds):
    lines = new_path("run.csv")
    summary, _, _ = load(service.http, "--csv", lines, duration=duration)
    flow = summary["flows"][0]
    assert len(flow["series"]["time_s"]) == seconds
    assert sum(flow["series"]["offered"]) == flow["offered"] > 0
    assert sum(flow["series"]["length_s"]) >= summary["measured_s"]
    with open(lines, newline="") as file:
        assert sum(int(row["offered"]) for row in csv.DictReader(file)) == flow["offered"]


def test_a_terminal_gets_a_table_that_is_redrawn(service):
    ours, theirs = pty.openpty()
    argv = [process.program(SPILLLOAD), "--flow", f"name=a,target={service.http},rate=50/s", "--flow",
            f"name=b,target={service.http},rate=50/s", "--duration", "3s"]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                             env=dict(os.environ, TERM="xterm"), start_new_session=True)
    os.close(theirs)
    text = b""
    try:
        while True:
            text += os.read(ours, 65536)
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert child.wait(process.PATIENCE_S) == 0, child.stderr.read()
    child.stderr.close()
    text = text.decode()
    assert "3 s of 3 s" in text and "total" in text
    # Twice drawn over, then taken away for the final table: bar, heads, two flows and the total.
    assert text.count("\033[5F\033[J") == 3
    assert "\033[" not in text.rsplit("\033[J", 1)[1]


# ---------------------------------------------------------------- compare


def test_compare_a_run_with_itself_and_with_another_rate(service, runs):
    done = spillload("compare", runs[0], runs[0], "--json")
    rows = json.loads(done.stdout)["flows"][0]["metrics"]
    for row in rows:
        assert row["ratio"] in (1, None) and row["difference"] != "shown"
    with open(runs[0]) as file:
        flow = json.load(file)["flows"][0]
    figures = {row["metric"]: row["a"] for row in rows}
    assert figures["throughput"] == pytest.approx(flow["throughput_per_s"])
    for metric, key in (("mean", "mean_ms"), ("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p999_ms")):
        assert figures[metric] == pytest.approx(flow["latency"][key])
    # 3 s are not enough to tell anything, and it says so.
    assert "not enough seconds to tell" in spillload("compare", *runs).stdout

    slow = load(service.http, rate="100/s", duration="10s")[1]
    fast = load(service.http, rate="200/s", duration="10s")[1]
    rows = json.loads(spillload("compare", slow, fast, "--json").stdout)["flows"][0]["metrics"]
    throughput = rows[0]
    assert throughput["metric"] == "throughput" and throughput["ratio"] == pytest.approx(2, rel=0.05)
    assert throughput["difference"] == "shown" and throughput["p"] < 0.01
    assert throughput["p"] >= throughput["p_uncorrected"]
    assert 8 <= throughput["blocks_a"] <= 10 and 8 <= throughput["blocks_b"] <= 10

    done = spillload("compare", slow, fast, "--fail-above", "throughput=1.5", check=False)
    assert done.returncode == 1 and "throughput is" in done.stderr
    assert spillload("compare", slow, fast, "--fail-above", "throughput=2.5").returncode == 0
    assert spillload("compare", fast, slow, "--fail-below", "throughput=0.9", check=False).returncode == 1


@pytest.mark.parametrize("arguments, status, message", [
    ([], 2, "expected two files"),
    (["/nonexistent/a", "/nonexistent/b"], 1, "/nonexistent/a: No such file"),
    (["/dev/null", "/dev/null"], 1, "not JSON"),
    (["--fail-above", "speed=2", "a", "b"], 2, "METRIC=RATIO"),
    (["--fail-above", "p99=x", "a", "b"], 2, "METRIC=RATIO"),
])
def test_compare_says_what_is_wrong(arguments, status, message):
    done = spillload("compare", *arguments, check=False)
    assert done.returncode == status and message in done.stderr


# ---------------------------------------------------------------- merge


def test_two_generators_at_once_merge_to_what_the_service_saw(service):
    before = stats(service)["completed"]
    paths = [new_path(f"part{number}.json") for number in range(2)]
    parts = [process.Process("spillload", [
        process.program(SPILLLOAD), "--flow", f"name=web,target={service.http},rate=150/s", "--duration", "2s",
        "--seed", number + 1, "--json", path]) for number, path in enumerate(paths)]
    for part in parts:
        assert part.wait() == 0, part.log()
    whole = new_path("whole.json")
    done = spillload("merge", *paths, "--json", whole)
    assert "the commands differ" in done.stderr
    summaries = []
    for path in (*paths, whole):
        with open(path) as file:
            summaries.append(json.load(file))
    flows = [summary["flows"][0] for summary in summaries]
    merged = flows[2]
    assert merged["offered"] == stats(service)["completed"] - before
    for key in ("offered", "completed", "bytes_in", "throughput_per_s", "offered_per_s"):
        assert merged[key] == pytest.approx(flows[0][key] + flows[1][key])
    counts = {}
    for flow in flows[:2]:
        for start, count in zip(*(flow["latency"]["histogram"][key] for key in ("start_ns", "count"))):
            counts[start] = counts.get(start, 0) + count
    assert counts == dict(zip(*(merged["latency"]["histogram"][key] for key in ("start_ns", "count"))))
    assert sum(merged["series"]["done"]) == sum(sum(flow["series"]["done"]) for flow in flows[:2])
    assert spillload("compare", whole, whole).returncode == 0


def test_runs_at_different_times_are_not_merged_unless_forced(runs):
    done = spillload("merge", *runs, check=False)
    assert done.returncode == 1 and "did not measure at the same time" in done.stderr
    assert "that never was" in spillload("--merge", *runs, "--force").stderr
    assert "same seed" in spillload("merge", runs[0], runs[0]).stderr


# ---------------------------------------------------------------- plot


@pytest.mark.parametrize("kind", ["time", "cdf", "percentiles"])
def test_pictures_of_runs(runs, kind):
    for files in (runs[:1], runs):
        path = new_path("picture.svg")
        spillload("plot", kind, *files, "-o", path, "--title", "it's `a` \"title\" {}_^ $x \\n 5 %d")
        root = xml.etree.ElementTree.parse(path).getroot()
        text = "".join(root.itertext())
        assert "it's `a` \"title\" {}_^ $x \\n 5 %d" in text.replace("\xa0", " ")
        assert ("web, run 2" if len(files) > 1 else "web") in text.replace("\xa0", " ")
        assert "response time" in text.replace("\xa0", " ")
    path = new_path("picture.png")
    spillload("plot", kind, *runs, "-o", path, "--size", "800x400")
    with open(path, "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")) == (800, 400)


def test_a_run_of_a_moment_has_a_picture(service):
    picture = new_path("moment.svg")
    spillload("plot", "time", load(service.http, duration="50ms", rate="1000/s")[1], "-o", picture)
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_plot_says_what_is_wrong(runs):
    for arguments, status, message in [
            (["pie", runs[0], "-o", "x.png"], 2, "expected a kind"),
            (["time", runs[0]], 2, "expected files, and -o"),
            (["time", runs[0], "-o", "x.gif"], 1, "ends in .png, .svg or .gp"),
            (["time", runs[0], "-o", "x.png", "--metric", "p42"], 2, "mean, p50, p90 or p99"),
            (["time", runs[0], "-o", "x.png", "--size", "9x9"], 2, "WIDTHxHEIGHT"),
            (["sweep", runs[0], "-o", "x.png"], 1, "no result of spillload sweep"),
            (["time", "/nonexistent", "-o", "x.png"], 1, "/nonexistent: No such file"),
            (["time", runs[0], "-o", "/nonexistent/x.png"], 1, "/nonexistent/x.png was not made"),
            (["cdf", runs[0], "-o", "x.svg", "--flow", "nobody"], 1, "nothing to draw")]:
        done = spillload("plot", *arguments, check=False, cwd=process.scratch())
        assert (done.returncode, message in done.stderr) == (status, True), (arguments, done.stderr)
        assert done.stdout == "", "no picture on standard output"
    done = spillload("plot", "time", runs[0], "-o", new_path("x.png"), check=False, env={"PATH": "/nonexistent"})
    assert done.returncode == 1 and "install the package gnuplot-nox" in done.stderr
    script = new_path("x.gp")
    spillload("plot", "time", runs[0], "-o", script, env={"PATH": "/nonexistent"})
    process.run([process.tool("gnuplot"), script])
    assert os.path.getsize(script + ".png") > 1000


# ---------------------------------------------------------------- sweep


def test_a_sweep_finds_where_the_service_is_full(service):
    """Closed loop with a think time of 18 ms before 2 ms of service: C clients ask for C / 20 ms, of which 4
    slots serve 2000 a second: 40 clients fill it. Asked for in steps of 16, the knee is next to it."""
    path, picture = new_path("sweep.json"), new_path("sweep.svg")
    done = spillload("sweep", "--vary", "concurrency=8..120:8", "--under", "errors=0%", "--json", path, "--",
                     "--flow", f"name=web,target={service.http},concurrency=1,think=18ms", "--duration", "1s",
                     "--label", "clients")
    with open(path) as file:
        sweep = json.load(file)
    assert [step["text"] for step in sweep["steps"]] == "8 24 40 56 72 88 104 120".split()
    assert [step["summary"]["flows"][0]["concurrency"] for step in sweep["steps"]] == [
        step["value"] for step in sweep["steps"]]
    rates = [step["summary"]["flows"][0]["throughput_per_s"] for step in sweep["steps"]]
    assert rates[0] < rates[1] and max(rates) <= 2050, rates
    assert "errors=0%: kept by every flow up to concurrency 120" in done.stdout
    if sweep["knee"] is not None:
        assert f"knee: concurrency {sweep['knee']:.0f}" in done.stdout
    spillload("plot", "sweep", path, "-o", picture)
    assert "concurrency" in "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())


def test_a_sweep_ends_where_the_limit_is_passed(service):
    path = new_path("sweep.json")
    done = spillload("sweep", "--vary", "bytes=100,200,300", "--until", "p50=1us", "--json", path, "--",
                     "--flow", f"target={service.http},rate=50/s,path=/?bytes={{}}", "--duration", "500ms")
    with open(path) as file:
        steps = json.load(file)["steps"]
    assert [step["text"] for step in steps] == ["100"]
    assert "p50=1us: not kept even at the first value" in done.stdout
    # {} was in the path.
    flow = steps[0]["summary"]["flows"][0]
    assert flow["bytes_in"] == 100 * flow["outcomes"]["ok"] > 0


def test_a_run_that_fails_ends_the_sweep_and_what_was_before_stays():
    port = process.free_port()
    path = new_path("sweep.json")
    done = spillload("sweep", "--vary", "rate=10/s,20/s", "--json", path, "--", "--flow",
                     f"target=127.0.0.1:{port},rate=1/s", "--duration", "300ms", check=False)
    assert done.returncode == 1 and "no request to" in done.stderr
    with open(path) as file:
        assert [step["text"] for step in json.load(file)["steps"]] == ["10/s"]
    done = spillload("sweep", "--vary", "nothing=1,2", "--", "--flow", f"target=127.0.0.1:{port},rate=1/s",
                     check=False)
    assert done.returncode == 1 and "ended with status 2" in done.stderr


def test_an_interrupted_sweep_keeps_the_steps_before(service):
    path = new_path("sweep.json")
    sweep = process.Process("spillload", [
        process.program(SPILLLOAD), "sweep", "--vary", "rate=50/s,60/s", "--json", path, "--", "--flow",
        f"target={service.http},rate=1/s", "--duration", "2s"])
    sweep.wait_log("50/s")
    sweep.send_signal(signal.SIGINT)
    assert sweep.wait() == 0, sweep.log()
    assert "interrupted" in sweep.log()
    with open(path) as file:
        assert [step["text"] for step in json.load(file)["steps"]] == ["50/s"]


@pytest.mark.parametrize("arguments, message", [
    (["--", "--flow", "x"], "expected --vary"),
    (["--vary", "rate=1..2:3"], "expected --vary NAME=VALUES, then --"),
    (["--vary", "rate=5..2:3", "--", "x"], "--vary rate=5..2:3: expected"),
    (["--vary", "rate=1,2", "--until", "p99=5", "--", "x"], "--until p99=5: expected"),
    (["--vary", "rate=1,2", "--until", "errors=5", "--", "x"], "--until errors=5: expected"),
])
def test_a_wrong_sweep_is_status_2(arguments, message):
    done = spillload("sweep", *arguments, check=False)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.parametrize("words", [["help"], ["profiles"], ["profiles", "square-wave"], ["trace", "show", "big-spike"]])
def test_words_that_do_not_arrive_are_no_success(words):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([process.program(SPILLLOAD), *words], check=False, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60)
    assert done.returncode == 1
    assert "standard output: No space left on device" in done.stderr


def test_the_protocol_is_told_as_it_was(service):
    path = new_path("protocol")
    spillload("--flow", f"name=a,proto=h2c,target={service.http},concurrency=1", "--flow", f"name=b,target={service.http},concurrency=1",
              "--duration", "300ms", "--json", path, check=False)
    with open(path) as file:
        assert [flow["proto"] for flow in json.load(file)["flows"]] == ["h2c", "http"]
