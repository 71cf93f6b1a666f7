# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each party in turn, under load: what was lost is said, the rest goes on."""
import os

import pytest

from lab import http, nfs, process, rpc
from lab.http import answer
from lab.load import Load, Service
from lab.spillway import http_config, nfs_config


@pytest.fixture
def both(spillway, closing):
    """(web port, NFS port, [two services], proxy): one pool of two HTTP servers, one NFS pool of
    one."""
    services = [closing(Service(4, "2ms", "exponential")) for _ in range(2)]
    web, nas = process.free_port(), process.free_port()
    config = http_config(
        [{"name": f"s{n}", "address": s.http, "depth": 4} for n, s in enumerate(services)],
        web,
        {"retry": {"attempts": 2, "dead-after": 1, "dead-for": "300ms"}},
    )
    config["listeners"].append(
        {"name": "nas", "bind": [f"127.0.0.1:{nas}"], "protocol": "nfs", "pool": "array"}
    )
    config["pools"].append(
        {
            "name": "array",
            "servers": [{"name": "n0", "address": services[0].nfs, "depth": 4}],
            "retry": {"dead-for": "300ms"},
        }
    )
    return web, nas, services, spillway(config)


def http_load(port, name="web", duration="30s"):
    return Load([f"name={name},proto=http,target=127.0.0.1:{port},concurrency=16"], duration)


def nfs_load(port, name="nas", duration="30s"):
    return Load(
        [f"name={name},proto=nfs,target=127.0.0.1:{port},concurrency=16,op=read,bytes=65536"],
        duration,
    )


def wait_growth(proxy, name, amount, **labels):
    """Until the counter has grown by amount from what it is now."""
    start = proxy.metric(name, **labels)
    proxy.wait_metric(name, lambda value: value >= start + amount, **labels)


def test_killed_clients_free_their_slots_and_others_go_on(both, closing):
    web, nas, _, proxy = both
    doomed = [closing(http_load(web, "doomed")), closing(nfs_load(nas, "doomed"))]
    staying = closing(http_load(web, "staying", "4s"))
    wait_growth(proxy, "spillway_pool_requests_total", 200, pool="farm")
    wait_growth(proxy, "spillway_pool_requests_total", 100, pool="array")
    for one in doomed:
        one.close()
    outcomes = staying.result()["staying"]["outcomes"]
    assert sum(n for kind, n in outcomes.items() if kind != "ok") == 0, outcomes
    for pool in ("farm", "array"):
        proxy.wait_metric("spillway_pool_outstanding", 0, pool=pool)
        proxy.wait_metric("spillway_pool_queue_length", 0, pool=pool)
    with http.Client(web) as one:
        assert one.ask().status == 200


def test_killed_http_server_costs_its_requests_only(both, closing):
    web, _, services, proxy = both
    load = closing(http_load(web))
    wait_growth(proxy, "spillway_pool_requests_total", 200, pool="farm")
    services[1].close()
    wait_growth(proxy, "spillway_pool_requests_total", 500, pool="farm")
    figures = load.finish()["web"]
    failed = sum(n for kind, n in figures["outcomes"].items() if kind != "ok")
    assert failed <= 40, figures[
        "outcomes"
    ]  # those in its slots, and one at each time it was tried again
    assert proxy.metric("spillway_server_up", server="s1") == 0
    assert proxy.metric("spillway_pool_outstanding", pool="farm") <= 4


def test_all_http_servers_killed_then_back(spillway, origin, client):
    port, back = process.free_port(), process.free_port()
    first = origin(lambda exchange: answer(b"first"), port=back)
    proxy = spillway(
        http_config([f"127.0.0.1:{back}"], port, {"retry": {"dead-after": 1, "dead-for": "200ms"}})
    )
    one = client(port)
    assert one.ask().body == b"first"
    first.close()
    first.until(lambda: first.open == 0, "gone")
    process.wait_until(
        lambda: client(port).ask("POST", body=b"x").status in (502, 503), "the loss is said"
    )
    origin(lambda exchange: answer(b"second"), port=back)
    process.wait_until(
        lambda: client(port).ask("POST", body=b"x").body == b"second",
        "the server that is back gets requests",
        every_s=0.1,
    )
    assert proxy.metric("spillway_pool_outstanding", pool="farm") == 0


def test_killed_nfs_server_closes_or_resends_and_comes_back(both, closing, rpc_client):
    _, nas, services, proxy = both
    load = closing(nfs_load(nas))
    wait_growth(proxy, "spillway_pool_requests_total", 100, pool="array")
    address = services[0].nfs
    services[0].close()
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="array")
    again = process.Process(
        "spillorigin-again", [process.program("spillorigin"), "--nfs", address, "--slots", "4"]
    )
    again.wait_log("ready")
    load.close()

    def works():
        one = rpc.Client(nas)
        try:
            return one.mount("/export")
        except (rpc.Ended, AssertionError, OSError):
            return None
        finally:
            one.close()

    process.wait_until(works, "NFS works again")
    again.kill()


def test_killed_proxy_closes_both_sides_and_a_new_one_starts_at_once(
    spillway, origin, rpc_server, client, rpc_client
):
    web_server, nas_server = origin(), rpc_server()
    web, nas = process.free_port(), process.free_port()
    pid_file = os.path.join(process.scratch(), "pid")
    config = http_config([web_server.address], web, **{"pid-file": pid_file})
    config["listeners"].append(
        {"name": "nas", "bind": [f"127.0.0.1:{nas}"], "protocol": "nfs", "pool": "array"}
    )
    config["pools"].append({"name": "array", "servers": [{"address": nas_server.address}]})
    proxy = spillway(config)
    one, two = client(web), rpc_client(nas)
    assert one.ask().status == 200
    two.nfs3(rpc.NULL)
    proxy.kill()
    assert one.closed() and two.closed()
    web_server.until(lambda: web_server.open == 0, "server connections closed")
    nas_server.until(lambda: nas_server.open == 0, "server connections closed")
    config["admin"] = {"socket": proxy.socket}  # the dead one's
    again = spillway(config, wait=False)
    again.process.wait_listening(web, nas)
    assert client(web).ask().status == 200
    rpc_client(nas).nfs3(rpc.NULL)


# ------------------------------------------------ a real kernel client and a real server

PORT = 2049
WRITE_AND_VERIFY = """
set -e
{mount}
echo MOUNTED
dd if=/dev/urandom of=/run/source bs=1M count=6 2>/dev/null
i=0
while [ $i -lt 6 ]; do
    dd if=/run/source of=/mnt/n/copy$i bs=64k conv=fsync 2>/dev/null
    echo WROTE $i
    i=$((i + 1))
done
echo 3 > /proc/sys/vm/drop_caches
for f in /mnt/n/copy*; do cmp $f /run/source; done
echo VERIFIED $(sha256sum < /run/source)
"""


def verify(ganesha, output):
    wanted = output.split("VERIFIED ")[1].split()[0]
    for number in range(6):
        done = process.run(["sha256sum", os.path.join(ganesha.folder, f"copy{number}")])
        assert done.stdout.split()[0] == wanted, f"copy{number} differs"


@pytest.mark.parametrize("version", ["3", "4.1"])
def test_kernel_client_survives_the_servers_kill_during_writes(spillway, ganesha, net, version):
    proxy = spillway(nfs.proxy_config(PORT, pool={"retry": {"dead-for": "200ms"}}), net=net)
    job = nfs.KernelJob(
        net, WRITE_AND_VERIFY.format(mount=nfs.mount_command(ganesha, "/mnt/n", version, PORT))
    )
    job.says("WROTE 1", 120)
    ganesha.crash()
    ganesha.start()
    status, output = job.result(240)
    assert (status, "VERIFIED" in output) == (0, True), output
    verify(ganesha, output)
    assert proxy.process.running()


@pytest.mark.parametrize("version", ["3", "4.1"])
def test_kernel_client_survives_the_proxys_kill_during_writes(spillway, ganesha, net, version):
    config = nfs.proxy_config(PORT)
    proxy = spillway(config, net=net)
    job = nfs.KernelJob(
        net, WRITE_AND_VERIFY.format(mount=nfs.mount_command(ganesha, "/mnt/n", version, PORT))
    )
    job.says("WROTE 1", 120)
    proxy.kill()
    spillway(config, net=net)
    status, output = job.result(240)
    assert (status, "VERIFIED" in output) == (0, True), output
    verify(ganesha, output)


def test_killed_kernel_client_leaves_nothing_and_others_work(spillway, ganesha, net):
    """Power off in the middle of writes: no FIN ever comes, only a tap device without a machine."""
    config = nfs.proxy_config(PORT, listener={"timeouts": {"client-idle": "1s", "body-idle": "1s"}})
    proxy = spillway(config, net=net)
    job = nfs.KernelJob(
        net, WRITE_AND_VERIFY.format(mount=nfs.mount_command(ganesha, "/mnt/n", "3", PORT))
    )
    job.says("WROTE 0", 120)
    job.client.kill()
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    with open(os.path.join(ganesha.folder, "text"), "w") as file:
        file.write("still here\n")
    assert nfs.libnfs(net, "nfs-cat", nfs.url(ganesha, "text", PORT)).stdout == "still here\n"


def test_libnfs_killed_in_the_middle_of_a_copy(spillway, ganesha, net):
    proxy = spillway(nfs.proxy_config(PORT), net=net)
    here = process.scratch(parent="/dev/shm")
    process.run(["truncate", "-s", "2G", f"{here}/sent"])
    copy = net.start(
        "nfs-cp", [process.tool("nfs-cp"), f"{here}/sent", nfs.url(ganesha, "copy", PORT)]
    )
    proxy.wait_metric("spillway_pool_bytes_in_total", lambda count: count > 16 << 20, pool="farm")
    copy.kill()
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    process.wait_until(
        lambda: not nfs.connections(net, nfs.NFS_PORT), "its server connection closed"
    )
    os.unlink(f"{here}/sent")


def test_server_killed_while_scripted_calls_are_queued(spillway, rpc_server, rpc_client):
    server, port = rpc_server(), process.free_port()
    proxy = spillway(
        nfs_config(
            [server.address],
            port,
            {"retry": {"attempts": 1, "dead-for": "100ms"}},
            None,
            {"depth": 2},
        )
    )
    server.pause()
    clients = [rpc_client(port) for _ in range(4)]
    for one in clients:
        for xid in range(1, 6):
            one.send(rpc.call(xid, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(b"h")))
    proxy.wait_metric("spillway_pool_queue_length", 18, pool="farm")
    server.close()
    for one in clients:  # each is told: by a close, or (for calls never sent) by the word for later
        try:
            while True:
                assert one.reply().results.u32() == rpc.NFS3ERR_JUKEBOX
        except rpc.Ended:
            pass
    proxy.wait_metric("spillway_pool_outstanding", 0, pool="farm")
    proxy.wait_metric("spillway_pool_queue_length", 0, pool="farm")
