# SPDX-License-Identifier: Apache-2.0
"""When the machine runs out of something: descriptors, disk for logs. Requests come first, and
nothing spins."""
import os
import resource
import time

from lab import http, process
from lab.http import request
from lab.spillway import http_config


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_descriptor_exhaustion_is_survived(spillway, origin, client):
    server, port = origin(), process.free_port()
    proxy = spillway(
        http_config([server.address], port), limits=[(resource.RLIMIT_NOFILE, (64, 64))]
    )
    first = client(port)
    assert first.ask().status == 200
    crowd = []
    for _ in range(150):
        try:
            crowd.append(client(port))
        except OSError:
            break
    for one in crowd:
        try:
            one.send(request())
        except OSError:
            pass
    assert first.ask().status == 200, "a client that is in must not suffer"
    # A listener that is ready and can't be accepted from must not make the loop spin. (The pause
    # is what is measured.)
    before = cpu_seconds(proxy.pid)
    time.sleep(1)
    assert cpu_seconds(proxy.pid) - before < 0.5, "spins while out of descriptors"
    for one in crowd:
        one.close()

    def served():
        try:
            with http.Client(port) as one:
                one.sock.settimeout(1)
                return one.ask().status == 200
        except (OSError, http.Ended):
            return False

    process.wait_until(served, "new clients are served again")
    assert first.ask().status == 200
    assert proxy.process.running()


def test_descriptor_exhaustion_towards_servers_is_said_not_hung(spillway, origin, client):
    """No descriptor is left for a server connection: an answer comes all the same."""
    server, port = origin(), process.free_port()
    proxy = spillway(
        http_config([server.address], port, {"idle-connections": 0}),
        limits=[(resource.RLIMIT_NOFILE, (64, 64))],
    )
    crowd = [client(port) for _ in range(80)]
    statuses = []
    for one in crowd:
        try:
            one.send(request())
            one.sock.settimeout(0.01 if None in statuses else 2)  # they are accepted in order
            statuses.append(one.reply().status)
        except (OSError, http.Ended):
            statuses.append(None)  # never accepted, or closed at once
    assert statuses.count(200) >= 20
    assert set(statuses) <= {200, 502, 503, None}
    for one in crowd:
        one.close()
    process.wait_until(lambda: http.Client(port).ask().status == 200, "recovers")
    assert proxy.process.running()


def on_small_disk(folder, size):
    """Wraps a command: `folder` is a file system of that size, seen by it alone."""
    return [
        process.tool("unshare"),
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        f'mount -t tmpfs -o size={size} tmpfs {folder} && exec "$@"',
        "sh",
    ]


def test_full_disk_for_logs_costs_lines_not_requests(spillway, origin, client):
    server, port, folder = origin(), process.free_port(), process.scratch()
    proxy = spillway(
        http_config(
            [server.address],
            port,
            log={
                "access": f"{folder}/access.log",
                "target": f"{folder}/spillway.log",
                "level": "debug",
            },
        ),
        wrap=on_small_disk(folder, "64k"),
    )
    one = client(port)
    for number in range(2000):
        assert one.ask(target=f"/{number}/" + "x" * 100).status == 200
    proxy.wait_metric("spillway_log_lines_dropped_total", lambda count: count > 0)
    # Room again: logging goes on, and the loss is said once.
    inside = f"/proc/{proxy.pid}/root{folder}"
    for name in ("access.log", "spillway.log"):
        os.truncate(f"{inside}/{name}", 0)
    assert one.ask(target="/after").status == 200

    def logged():
        with open(f"{inside}/access.log", errors="replace") as log:
            return "/after" in log.read()

    process.wait_until(logged, "the access log goes on")


def test_log_folder_that_is_not_there_is_said_at_start(spillway, origin):
    proxy = spillway(
        http_config(
            [origin().address], process.free_port(), log={"access": "/nonexistent/access.log"}
        ),
        wait=False,
    )
    assert proxy.process.wait() != 0
    proxy.stopped = True
    assert "/nonexistent/access.log" in proxy.log()


def test_log_pipe_that_breaks_does_not_end_the_proxy(spillway, origin, client):
    """stderr goes to a pipe whose reader is gone."""
    server, port = origin(), process.free_port()
    spillway(
        http_config([server.address], port, log={"access": "stderr", "level": "debug"}),
        wrap=["bash", "-c", 'exec "$@" 2> >(exec true)', "bash"],
    )
    for _ in range(50):
        assert client(port).ask().status == 200
