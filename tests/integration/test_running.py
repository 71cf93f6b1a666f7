# SPDX-License-Identifier: Apache-2.0
"""Running it: signals, reload in place, logs, pid file, user, limits."""
import json
import os
import pwd
import re
import signal
import threading

import pytest

from lab import http, process
from lab.http import answer, request
from lab.spillway import http_config


@pytest.fixture
def held(origin):
    """(origin that answers only after release, release)."""
    go = threading.Event()

    def handler(exchange):
        if exchange.request.target.startswith(b"/held"):
            go.wait(process.PATIENCE_S)
        return answer()

    yield origin(handler), go.set
    go.set()


def start(spillway, backend, **options):
    port = process.free_port()
    run = {k: options.pop(k) for k in ("limits", "wrap") if k in options}
    return port, spillway(http_config([backend.address], port, **options), **run)


# ------------------------------------------------ signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains(spillway, held, client, number):
    server, release = held
    port, proxy = start(spillway, server)
    busy, idle = client(port), client(port)
    assert idle.ask().status == 200
    busy.send(request(target="/held"))
    server.wait_requests(2)
    proxy.process.send_signal(number)
    assert idle.closed(), "an idle connection is closed when draining begins"
    process.wait_until(
        lambda: port not in process.listening_ports(proxy.pid), "the listener closed"
    )
    with pytest.raises(OSError):
        http.Client(port)
    release()
    reply = busy.reply()
    assert reply.status == 200 and reply.get("connection") == b"close"
    assert busy.closed()
    assert proxy.process.wait() == 0
    proxy.stopped = True
    proxy.check_clean()


def test_queued_requests_are_answered_while_draining(spillway, held, client):
    server, release = held
    port, proxy = start(spillway, server, server={"depth": 1})
    ones = [client(port) for _ in range(4)]
    for one in ones:
        one.send(request(target="/held"))
    proxy.wait_metric("spillway_pool_queue_length", 3, pool="farm")
    proxy.process.send_signal(signal.SIGTERM)
    process.wait_until(lambda: port not in process.listening_ports(proxy.pid), "draining")
    release()
    assert [one.reply().status for one in ones] == [200] * 4
    proxy.stopped = True
    assert proxy.process.wait() == 0


def test_drain_ends_at_its_limit(spillway, held, client):
    server, _ = held
    port, proxy = start(spillway, server, **{"drain-timeout": "300ms"})
    one = client(port)
    one.send(request(target="/held"))
    server.wait_requests(1)
    proxy.process.send_signal(signal.SIGTERM)
    proxy.process.wait()
    proxy.stopped = True
    proxy.check_clean()


def test_second_signal_stops_at_once(spillway, held, client):
    server, _ = held
    port, proxy = start(spillway, server, **{"drain-timeout": "600s"})
    one = client(port)
    one.send(request(target="/held"))
    server.wait_requests(1)
    proxy.process.send_signal(signal.SIGTERM)
    process.wait_until(lambda: port not in process.listening_ports(proxy.pid), "draining")
    proxy.process.send_signal(signal.SIGTERM)
    proxy.process.wait()
    proxy.stopped = True
    proxy.check_clean()


def test_sigpipe_and_sigusr1_do_not_end_it(spillway, origin, client):
    port, proxy = start(spillway, origin())
    proxy.process.send_signal(signal.SIGPIPE)
    proxy.process.send_signal(signal.SIGUSR1)
    assert client(port).ask().status == 200


# ------------------------------------------------ reload


def test_reload_changes_servers_and_keeps_every_connection(spillway, origin, client):
    one_server, two_server = origin(lambda e: answer(b"one")), origin(lambda e: answer(b"two"))
    port, proxy = start(spillway, one_server)
    kept = [client(port) for _ in range(5)]
    assert {one.ask().body for one in kept} == {b"one"}
    assert proxy.reload(http_config([two_server.address], port))
    assert {one.ask().body for one in kept} == {b"two"}


def test_reload_lets_requests_in_flight_end(spillway, origin, held, client):
    server, release = held
    other = origin(lambda e: answer(b"other"))
    port, proxy = start(spillway, server, server={"depth": 1})
    ones = [client(port) for _ in range(3)]
    for one in ones:
        one.send(request(target="/held"))
    server.wait_requests(1)
    proxy.wait_metric("spillway_pool_queue_length", 2, pool="farm")
    assert proxy.reload(http_config([other.address], port))
    release()
    assert [one.reply().status for one in ones] == [200] * 3
    assert client(port).ask().body == b"other"


def test_reload_changes_weights_flows_depths_limits(spillway, origin, client):
    server = origin()
    port, proxy = start(
        spillway, server, pool={"flows": [{"name": "a", "weight": 1, "match": {"path": "/a"}}]}
    )
    one = client(port)
    assert one.ask(target="/a").status == 200
    assert proxy.reload(
        http_config(
            [server.address],
            port,
            {
                "flows": [
                    {"name": "a", "weight": 7, "match": {"path": "/a"}},
                    {"name": "b", "weight": 3, "match": {"path": "/b"}},
                ],
                "scheduler": {"algorithm": "sfq"},
            },
            {"limits": {"request-line": "100B"}},
            {"depth": 5},
        )
    )
    assert one.ask(target="/b").status == 200
    flows = {flow["name"]: flow for flow in proxy.show("flows")}
    assert (flows["a"]["weight"], flows["b"]["weight"]) == (7, 3)
    assert (
        proxy.metric("spillway_flow_requests_total", pool="farm", flow="a") == 1
    ), "counters of a flow that stays go on"
    assert proxy.metric("spillway_flow_requests_total", pool="farm", flow="b") == 1
    assert proxy.show("servers")[0]["depth"] == 5
    assert proxy.show("pools")[0]["algorithm"] == "sfq"
    assert one.ask(target="/" + "x" * 200).status == 414


def test_bad_file_leaves_the_old_one_and_says_why(spillway, origin, client):
    server = origin()
    port, proxy = start(spillway, server)
    one = client(port)
    assert one.ask().status == 200
    bad = http_config([server.address], port, {"flows": [{"name": "zero", "weight": 0}]})
    assert not proxy.reload(bad)
    assert one.ask().status == 200
    assert re.search(rf"{re.escape(proxy.path)}:\d+:\d+: .*weight", proxy.log())
    assert proxy.reload(http_config([server.address], port))


def test_change_that_needs_a_restart_is_refused_with_a_reason(spillway, origin, client):
    server = origin()
    port, proxy = start(spillway, server)
    assert not proxy.reload(http_config([server.address], process.free_port()))
    assert "restart" in proxy.log()
    assert client(port).ask().status == 200


def test_reloads_in_a_row_under_load_lose_nothing(spillway, origin, client):
    server = origin()
    port, proxy = start(spillway, server)
    failures, stop = [], threading.Event()

    def load():
        with http.Client(port) as one:
            while not stop.is_set():
                if one.ask().status != 200:
                    failures.append("not 200")

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for weight in range(1, 21):
            assert proxy.reload(
                http_config(
                    [server.address],
                    port,
                    {
                        "flows": [
                            {"name": f"flow{weight % 3}", "weight": weight, "by": "client-address"}
                        ]
                    },
                )
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


# ------------------------------------------------ logs


@pytest.mark.parametrize("kind", ["text", "json"])
def test_access_log_has_a_line_per_exchange_with_its_phases(spillway, origin, client, kind):
    server = origin()
    path = os.path.join(process.scratch(), "access.log")
    port, proxy = start(
        spillway,
        server,
        log={"access": path, "format": kind},
        pool={"flows": [{"name": "gold", "weight": 2, "match": {"header": {"X-T": "gold"}}}]},
    )
    one = client(port)
    one.ask("GET", "/first", [("X-T", "gold")])
    one.ask("PUT", "/second", body=b"12345")
    assert one.ask("GET", "/third\xff\x85").status in (200, 400)
    proxy.stop()
    with open(path) as file:
        lines = [line for line in file.read().splitlines() if line]
    assert (
        "/first" in lines[0] and "gold" in lines[0] and "/second" in lines[1] and "farm" in lines[1]
    )
    if kind == "json":
        first, second = json.loads(lines[0]), json.loads(lines[1])
        assert first["flow"] == "gold" and first["status"] == 200 and first["operation"] == "GET"
        assert first["client"].startswith("127.0.0.1")
        phases = [first[key] for key in first if key.endswith("_us")]
        assert len(phases) >= 3 and all(isinstance(us, int) and us >= 0 for us in phases), first
        assert second["bytes_in"] >= 5
    else:
        assert "200" in lines[0]


def test_log_lines_cannot_be_forged(spillway, origin, client):
    path = os.path.join(process.scratch(), "access.log")
    port, proxy = start(spillway, origin(), log={"access": path, "format": "json"})
    one = client(port)
    one.ask("GET", '/a%0A%22}{\\"x', [("User-Agent", '"}{')])
    with client(port) as other:
        other.send('GET /\x1b[31mred" HTTP/1.1\r\nHost: a\r\n\r\n')
        other.reply()
    proxy.stop()
    with open(path) as file:
        for line in file:
            json.loads(line)
            assert "\x1b" not in line


def test_log_to_a_file_is_opened_anew_upon_sighup(spillway, origin, client):
    server = origin()
    folder = process.scratch()
    path = os.path.join(folder, "spillway.log")
    port = process.free_port()
    config = http_config(
        [server.address],
        port,
        log={"target": path, "access": os.path.join(folder, "access.log"), "level": "info"},
    )
    proxy = spillway(config)
    client(port).ask(target="/before")

    def written():
        with open(os.path.join(folder, "access.log")) as log:
            return "/before" in log.read()

    process.wait_until(written, "the line is flushed")
    os.rename(os.path.join(folder, "access.log"), os.path.join(folder, "access.old"))
    assert proxy.reload(config)
    client(port).ask(target="/after")
    proxy.stop()
    with open(os.path.join(folder, "access.log")) as new, open(
        os.path.join(folder, "access.old")
    ) as old:
        new, old = new.read(), old.read()
    assert "/after" in new and "/before" not in new and "/before" in old and "/after" not in old
    assert os.path.getsize(path) > 0


def test_log_levels_and_json_lines(spillway, origin, client):
    path = os.path.join(process.scratch(), "spillway.log")
    port, proxy = start(
        spillway, origin(), log={"target": path, "format": "json", "level": "debug"}
    )
    client(port).ask()
    proxy.stop()
    with open(path) as file:
        lines = file.read().splitlines()
    assert lines and all("level" in json.loads(line) for line in lines)


# ------------------------------------------------ process


def test_pid_file_is_written_and_removed(spillway, origin):
    path = os.path.join(process.scratch(), "spillway.pid")
    _, proxy = start(spillway, origin(), **{"pid-file": path})
    with open(path) as file:
        assert int(file.read()) == proxy.pid
    proxy.stop()
    assert not os.path.exists(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")
def test_runs_as_an_unprivileged_user_after_binding(spillway, origin, client):
    server = origin()
    port = 80 if 80 not in process.listening_ports(os.getpid()) else 81
    proxy = spillway(http_config([server.address], port, user="nobody"), wait=False)
    proxy.process.wait_listening(port)
    assert client(port).ask().status == 200
    with open(f"/proc/{proxy.pid}/status") as file:
        status = file.read()
    uid, gid = pwd.getpwnam("nobody")[2:4]
    assert (
        re.search(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", status, re.M).groups()
        == (str(uid),) * 4
    )
    assert (
        re.search(r"^Gid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", status, re.M).groups()
        == (str(gid),) * 4
    )
    assert re.search(r"^Groups:\s*(.*)$", status, re.M).group(1).split() in ([], [str(gid)])
    assert int(re.search(r"^CapEff:\s+(\w+)", status, re.M).group(1), 16) == 0


def test_descriptor_limit_is_raised(spillway, origin):
    import resource

    _, proxy = start(spillway, origin(), limits=[(resource.RLIMIT_NOFILE, (256, 4096))])
    with open(f"/proc/{proxy.pid}/limits") as file:
        assert re.search(r"^Max open files\s+4096\s+4096", file.read(), re.M)


def test_address_in_use_is_said_with_its_name(spillway, origin):
    server = origin()
    proxy = spillway(http_config([server.address], server.port), wait=False)
    assert proxy.process.wait() != 0
    proxy.stopped = True
    assert str(server.port) in proxy.log() and "in use" in proxy.log()


def test_several_workers_all_serve(spillway, origin, client):
    port, proxy = start(spillway, origin(), workers=3)
    ones = [client(port) for _ in range(30)]
    assert all(one.ask().status == 200 for one in ones)
    assert len(os.listdir(f"/proc/{proxy.pid}/task")) >= 3


def test_nothing_is_leaked_over_many_connections(spillway, origin, client):
    port, proxy = start(spillway, origin())

    def round_of_clients():
        for number in range(300):
            with http.Client(port) as one:
                if number % 3 == 0:
                    one.send("GET / HTTP/1.1\r\nHos")
                elif number % 3 == 1:
                    one.ask()
                else:
                    one.send("bad\r\n\r\n")

    round_of_clients()
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")
    descriptors, memory = process.open_descriptors(proxy.pid), proxy.resident_bytes()
    for _ in range(3):
        round_of_clients()
    proxy.wait_metric("spillway_listener_connections_open", 0, listener="front")
    assert process.open_descriptors(proxy.pid) <= descriptors + 2
    assert proxy.resident_bytes() - memory < 4 << 20
