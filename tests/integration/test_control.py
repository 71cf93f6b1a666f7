# SPDX-License-Identifier: Apache-2.0
"""Seeing and steering a running proxy: spillctl, the control socket, the metrics page."""
import json
import os
import re
import socket
import threading
import urllib.error
import urllib.request

import pytest

from lab import process, rpc
from lab.http import answer, request
from lab.spillway import http_config, nfs_config, parse_metrics

FLOWS = [{"name": "gold", "weight": 2, "match": {"header": {"X-T": "gold"}}}, {"name": "silver", "weight": 1, "match": {"path": "/s"}}]


@pytest.fixture
def road(spillway, origin):
    def build(**options):
        server = origin(lambda exchange: answer(b"x" * 100))
        port = process.free_port()
        options.setdefault("pool", {"flows": FLOWS})
        servers = [{"name": "s1", "address": server.address, "depth": 4}]
        return port, spillway(http_config(servers, port, **options))
    return build


# ------------------------------------------------ metrics

def test_counters_agree_with_what_was_sent(road, client):
    port, proxy = road()
    one = client(port)
    for _ in range(7):
        one.ask("GET", "/", [("X-T", "gold")])
    for _ in range(3):
        one.ask("PUT", "/s/x", body=b"y" * 1000)
    one.ask("GET", "/other")
    metrics = proxy.metrics()
    assert metrics("spillway_pool_requests_total", pool="farm") == 11
    for flow, count in (("gold", 7), ("silver", 3), ("default", 1)):
        assert metrics("spillway_flow_requests_total", pool="farm", flow=flow) == count
        assert metrics("spillway_flow_wait_seconds_count", pool="farm", flow=flow) == count
        assert metrics("spillway_flow_service_seconds_count", pool="farm", flow=flow) == count
    assert metrics("spillway_server_requests_total", pool="farm", server="s1") == 11
    assert metrics("spillway_flow_bytes_in_total", pool="farm", flow="silver") >= 3000
    assert metrics("spillway_flow_bytes_out_total", pool="farm", flow="gold") >= 700
    assert metrics("spillway_flow_cost_total", pool="farm", flow="gold") == 7
    assert metrics("spillway_pool_queue_length", pool="farm") == metrics("spillway_pool_outstanding", pool="farm") == 0
    assert metrics("spillway_listener_connections_total", listener="front") == 1


def test_cost_by_bytes_and_by_table(road, client):
    port, proxy = road(pool={"cost": {"by": "bytes", "bytes-unit": "1KiB"}, "flows": FLOWS})
    client(port).ask("PUT", "/s/x", body=b"y" * 10240)
    assert 10 <= proxy.metric("spillway_flow_cost_total", flow="silver") <= 13
    port, proxy = road(pool={"cost": {"by": "table", "table": {"GET": 1, "PUT": 5}}, "flows": FLOWS})
    one = client(port)
    one.ask("PUT", "/s/x", body=b"y")
    one.ask("GET", "/s/x")
    assert proxy.metric("spillway_flow_cost_total", flow="silver") == 6


def test_page_is_prometheus_text(road, client):
    port, proxy = road()
    client(port).ask()
    status, text = proxy.api("GET", "/metrics")
    assert status == 200
    samples, types = parse_metrics(text)
    assert all(name.startswith(("spillway_", "process_")) for name in types)
    for name, kind in types.items():
        if kind == "counter":
            assert name.endswith("_total"), name
        if kind != "histogram":
            continue
        rows = [(labels, value) for (n, labels), value in samples.items() if n == name + "_bucket"]
        series = {}
        for labels, value in rows:
            end = float(dict(labels)["le"].replace("+Inf", "inf"))
            series.setdefault(tuple(l for l in labels if l[0] != "le"), []).append((end, value))
        for labels, buckets in series.items():
            assert buckets == sorted(buckets), f"{name}: buckets out of order or not cumulative"
            assert [v for _, v in buckets] == sorted(v for _, v in buckets)
            assert buckets[-1][0] == float("inf")
            assert buckets[-1][1] == samples[(name + "_count", labels)]


def test_page_is_on_the_loopback_address_and_read_only(road, client):
    http_port = process.free_port()
    port, proxy = road(admin={"http": f"127.0.0.1:{http_port}"})
    base = f"http://127.0.0.1:{http_port}"
    with urllib.request.urlopen(f"{base}/metrics") as page:
        assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        parse_metrics(page.read().decode())
    with urllib.request.urlopen(f"{base}/v1/pools") as page:
        assert json.load(page)
    for path, body in (("/v1/reload", b""), ("/v1/pools/farm", b'{"depth": 1}')):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(base + path, body, method="POST"))
        assert refused.value.code in (403, 405)
    assert proxy.show("servers")[0]["depth"] == 4


def test_head_has_a_length_and_no_body(road):
    http_port = process.free_port()
    road(admin={"http": f"127.0.0.1:{http_port}"})
    with socket.create_connection(("127.0.0.1", http_port), timeout=process.PATIENCE_S) as sock:
        sock.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /v1/pools HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        data = b""
        while more := sock.recv(65536):
            data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"Content-Length: 0" not in head and b"Content-Length: " in head
    assert rest.startswith(b"HTTP/1.1 200 "), "the next reply follows the head at once"


def test_page_is_off_by_default(road):
    port, proxy = road()
    with open(f"/proc/{proxy.pid}/net/tcp") as table:
        inodes = {line.split()[9] for line in table if line.split()[3] == "0A"}
    mine = {os.readlink(f"/proc/{proxy.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{proxy.pid}/fd")}
    assert len([i for i in inodes if f"socket:[{i}]" in mine]) == 1, "only the listener's port is open"


def test_label_values_are_escaped(spillway, origin, client):
    server, port = origin(), process.free_port()
    proxy = spillway(http_config([server.address], port, {"flows": [{"name": 'a"b\\c', "weight": 1}]}), wait=False)
    if process.wait_until(lambda: not proxy.process.running() or port in process.listening_ports(proxy.pid), "a start") \
            and not proxy.process.running():
        proxy.stopped = True
        assert "name" in proxy.log(), "such names may be refused, with the reason"
        return
    client(port).ask()
    assert proxy.metric("spillway_flow_requests_total", flow='a"b\\c') == 1


def test_nfs_counters(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(nfs_config([server.address], port, {
        "cost": {"by": "table", "table": {"read": 3, "write": 7, "metadata": 1}},
        "flows": [{"name": "alice", "weight": 2, "match": {"uid": 1001}}, {"name": "reads", "weight": 1, "match": {"procedure": "read"}}]}))
    alice, bob = rpc_client(port, uid=1001), rpc_client(port, uid=1002)
    for _ in range(5):
        alice.read(b"h", 0, 4096)
    alice.write(b"h", 0, b"x" * 4096)
    bob.read(b"h", 0, 100), bob.getattr_size(b"h")
    metrics = proxy.metrics()
    assert metrics("spillway_flow_requests_total", flow="alice") == 6
    assert metrics("spillway_flow_cost_total", flow="alice") == 22
    assert metrics("spillway_flow_requests_total", flow="reads") == 1
    assert metrics("spillway_flow_requests_total", flow="default") == 1
    assert metrics("spillway_flow_bytes_out_total", flow="alice") >= 5 * 4096
    assert metrics("spillway_flow_bytes_in_total", flow="alice") >= 4096


# ------------------------------------------------ spillctl

@pytest.mark.parametrize("what", ["pools", "flows", "servers", "admission", "status"])
def test_show_is_a_table_or_json(road, what):
    _, proxy = road()
    table = proxy.ctl("show", what).stdout
    assert table.strip()
    if what != "status":
        rows = table.splitlines()
        assert len(rows) >= 2
        assert not any(row.endswith(" ") for row in rows), "trailing blanks"
    assert json.loads(proxy.ctl("show", what, "--json").stdout) is not None
    assert {"pools": "farm", "flows": "gold", "servers": "s1", "admission": "none", "status": ""}[what] in table


def test_set_weight(road):
    _, proxy = road()
    proxy.ctl("set", "weight", "farm/gold", "9")
    assert {f["name"]: f["weight"] for f in proxy.show("flows")}["gold"] == 9


def test_set_depth_of_server_and_pool(road):
    _, proxy = road()
    proxy.ctl("set", "depth", "farm/s1", "2")
    assert proxy.show("servers")[0]["depth"] == 2
    proxy.ctl("set", "depth", "farm", "1")
    assert proxy.show("pools")[0]["depth"] == 1


@pytest.mark.parametrize("algorithm", ["fifo", "sfqd", "rw", "mclock", "2dfq"])
def test_set_algorithm_while_requests_run(road, client, algorithm):
    port, proxy = road()
    one = client(port)
    assert one.ask().status == 200
    proxy.ctl("set", "algorithm", "farm", algorithm)
    assert proxy.show("pools")[0]["algorithm"] == algorithm
    assert one.ask().status == 200


@pytest.fixture
def held(road, origin, spillway):
    """held(pool): (port, proxy, release); one request is at the server, and answered after release()."""
    go = threading.Event()

    def build(pool, log=None):
        server = origin(lambda exchange: (go.wait(process.PATIENCE_S), answer())[1])
        port = process.free_port()
        pool = {"flows": FLOWS, **pool}
        servers = [{"name": "s1", "address": server.address, "depth": 1}]
        return port, spillway(http_config(servers, port, pool, **({"log": {"access": log}} if log else {}))), go.set

    yield build
    go.set()


def in_queue(client, port, proxy, length):
    """A client whose request makes the queue that long; -1: the server is free."""
    one = client(port)
    one.send(request())
    if length < 0:
        proxy.wait_metric("spillway_pool_outstanding", 1, pool="farm")
    else:
        proxy.wait_metric("spillway_pool_queue_length", length, pool="farm")
    return one


def test_admission_is_set_while_requests_wait(held, client):
    log = process.scratch() + "/access.log"
    port, proxy, release = held({}, log)
    waiting = [in_queue(client, port, proxy, length) for length in (-1, 1, 2, 3)]
    proxy.ctl("set", "admission-limit", "farm", "3")
    proxy.ctl("set", "admission", "farm", "tail")
    refused = client(port).ask()
    assert refused.status == 503 and int(refused.get("retry-after")) >= 1
    row = proxy.show("admission")[0]
    assert (row["admission"], row["admission_action"], row["admission_limit"]) == ("tail", "refuse", 3)
    assert (row["offered"], row["admitted"], row["admission_refused"], row["marked"]) == (5, 4, 1, 0)
    assert row["refused"] == 0, "the queue was not full"
    assert re.search(r"farm +tail +refuse +5 +4 +1 +0 ", proxy.ctl("show", "admission").stdout)
    assert proxy.metric("spillway_flow_admission_refused_total", pool="farm", flow="default") == 1
    proxy.ctl("set", "admission-action", "farm", "mark")
    waiting.append(in_queue(client, port, proxy, 4))
    assert proxy.metric("spillway_pool_marked_total", pool="farm") == 1
    proxy.ctl("set", "admission", "farm", "none")
    waiting.append(in_queue(client, port, proxy, 5))
    assert proxy.metric("spillway_pool_marked_total", pool="farm") == 1
    assert proxy.metric("spillway_pool_admission_refused_total", pool="farm") == 1
    release()
    assert [one.reply().status for one in waiting] == [200] * 6
    proxy.stop()
    with open(log) as file:
        ends = [line.split()[-1] for line in file]
    assert sorted(ends) == ["admission"] + ["done"] * 6


def test_admission_lasts_until_a_reload(held, client):
    port, proxy, release = held({"admission": {"algorithm": "tail", "limit": 1}})
    waiting = [in_queue(client, port, proxy, length) for length in (-1, 1)]
    assert client(port).ask().status == 503
    said = proxy.ctl("set", "admission-target", "farm", "9ms").stderr
    assert "no effect" in said and "codel" in said
    assert proxy.ctl("set", "admission", "farm", "none").stderr == ""
    waiting.append(in_queue(client, port, proxy, 2))
    assert proxy.reload()
    row = proxy.show("pools")[0]
    assert (row["admission"], row["admission_limit"], row["admission_target_seconds"]) == ("tail", 1, 0)
    assert client(port).ask().status == 503
    release()
    assert [one.reply().status for one in waiting] == [200] * 3


def test_drain_and_ready_show(road):
    _, proxy = road()
    proxy.ctl("drain", "farm/s1")
    assert "drain" in proxy.show("servers")[0]["state"]
    proxy.ctl("ready", "farm/s1")
    assert "drain" not in proxy.show("servers")[0]["state"]


def test_reload_by_spillctl(road):
    _, proxy = road()
    proxy.ctl("reload")
    proxy.wait_metric("spillway_config_reloads_total", 1, result="ok")
    with open(proxy.path, "a") as file:
        file.write("nonsense-key: 1\n")
    failed = proxy.ctl("reload", check=False)
    assert failed.returncode != 0
    assert "nonsense-key" in failed.stderr + failed.stdout, "the reason is told to the one who asked"


@pytest.mark.parametrize("arguments, word", [
    (["set", "weight", "farm/nobody", "2"], "gold"), (["set", "weight", "barn/gold", "2"], "farm"),
    (["set", "weight", "farm/gold", "0"], "weight"), (["set", "weight", "farm/gold", "-1"], "weight"),
    (["set", "weight", "farm/gold", "1000001"], "weight"), (["set", "weight", "farm/gold", "two"], "two"),
    (["set", "algorithm", "farm", "lottery"], "lottery"), (["set", "admission", "farm", "red"], "duk-literal"),
    (["set", "admission", "barn", "duk"], "farm"), (["set", "admission-action", "farm", "drop"], "mark"),
    (["set", "admission-limit", "farm", "0"], "from 1"), (["set", "admission-target", "farm", "5"], "unit"), (["set", "depth", "farm/nobody", "2"], "nobody"),
    (["drain", "farm/nobody"], "nobody"), (["dance"], "dance"), (["show", "elephants"], "elephants"), (["set"], "set")],
    ids=lambda value: "_".join(value) if isinstance(value, list) else None)
def test_mistakes_are_said_and_change_nothing(road, arguments, word):
    _, proxy = road()
    failed = proxy.ctl(*arguments, check=False)
    assert failed.returncode != 0
    assert word in failed.stderr, failed.stderr
    assert {f["name"]: f["weight"] for f in proxy.show("flows")}["gold"] == 2


def test_no_proxy_is_said(road):
    done = process.run([process.program("spillctl"), "-s", "/nonexistent/socket", "show", "pools"], check=False)
    assert done.returncode != 0 and "/nonexistent/socket" in done.stderr


def test_metrics_command_prints_the_page(road):
    _, proxy = road()
    parse_metrics(proxy.ctl("metrics").stdout)


def test_socket_is_not_for_everybody(road):
    _, proxy = road()
    assert os.stat(proxy.socket).st_mode & 0o777 == 0o660


def test_stale_socket_is_replaced_a_living_one_is_not(road, spillway, origin):
    _, proxy = road()
    server = origin()
    second = spillway(http_config([server.address], process.free_port(), admin={"socket": proxy.socket}), wait=False)
    assert second.process.wait() != 0
    second.stopped = True
    assert proxy.show("pools")
    proxy.kill()
    third = spillway(http_config([server.address], process.free_port(), admin={"socket": proxy.socket}), wait=False)
    third.socket = proxy.socket

    def answers():
        try:
            return third.show("pools")
        except AssertionError:
            return None
    process.wait_until(answers, "the stale socket is replaced")


def test_garbage_on_the_control_socket_is_harmless(road, client):
    port, proxy = road()
    for data in (b"\x00\xff" * 1000, b"GET /metrics\r\n\r\n", b"POST /v1/pools/farm HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{{{{{",
                 b"GET /" + b"x" * 100000):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(proxy.socket)
            try:
                sock.sendall(data)
            except OSError:
                pass
    for path in ("/", "/v1/nothing", "/v1/pools/../../etc/passwd", "/v1/pools/%00"):
        assert proxy.api("GET", path)[0] in (400, 404)
    assert proxy.api("DELETE", "/v1/pools")[0] in (404, 405, 501)
    assert client(port).ask().status == 200
    assert re.search(r"farm", proxy.ctl("show", "pools").stdout)
