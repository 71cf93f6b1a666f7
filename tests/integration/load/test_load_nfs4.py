# SPDX-License-Identifier: Apache-2.0
"""spillload's NFSv4.0 and 4.1 flows against nfs-ganesha, straight and through the proxy: every
operation, file sets, verification, damage, a server that is killed, a grace period."""
import json
import os
import re

import pytest

from lab import nfs, process

VERSIONS = ("4.0", "4.1")
OPERATIONS = (
    "read",
    "write",
    "getattr",
    "lookup",
    "access",
    "setattr",
    "readdir",
    "create",
    "remove",
    "commit",
    "fsstat",
)
SET = "files=60,depth=1,width=4,size=16KiB"


class Load:
    """spillload in the network with one NFS flow; result() gives its figures."""

    def __init__(self, net, ganesha, keys, duration="1s", port=nfs.NFS_PORT, extra=()):
        self.path = os.path.join(process.scratch(), "load.json")
        flow = (
            f"name=x,proto=nfs,target={nfs.SERVER_ADDRESS}:{port},export={ganesha.pseudo},{keys}"
        )
        self.process = net.start(
            "spillload",
            [
                process.program("spillload"),
                "--duration",
                duration,
                "--json",
                self.path,
                *extra,
                "--flow",
                flow,
            ],
        )

    def result(self, deadline_s=120):
        status = self.process.wait(deadline_s)
        assert status == 0, f"spillload ended with {status}:\n{self.process.log()}"
        with open(self.path) as file:
            return json.load(file)["flows"][0]


@pytest.fixture
def load(net, ganesha, closing):
    """load(keys, ...) runs a flow to its end; its figures."""

    def run(keys, **options):
        return Load(net, ganesha, keys, **options).result()

    return run


def one_file(ganesha, size=1 << 20):
    with open(os.path.join(ganesha.folder, "data"), "wb") as file:
        file.write(b"x" * size)


def errors(flow):
    return {
        name: count for name, count in flow["outcomes"].items() if count and name not in ("ok",)
    }


def good(flow):
    """Requests were answered, each of them OK."""
    assert errors(flow) == {}
    assert flow["outcomes"]["ok"] > 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_on_one_file(load, ganesha, version, operation):
    one_file(ganesha)
    flow = load(f"version={version},concurrency=4,connections=2,op={operation}", duration="500ms")
    good(flow)
    moved = {"read": "bytes_in", "write": "bytes_out"}.get(operation)
    if moved:
        assert flow[moved] == 4096 * flow["outcomes"]["ok"]
    assert os.listdir(ganesha.folder) == ["data"]  # what it made it has removed


@pytest.mark.parametrize("version", VERSIONS)
def test_a_set_is_made_and_used_again(load, ganesha, net, version):
    keys = f"version={version},concurrency=8,connections=2,{SET},mix=sfs97"
    good(load(keys))
    top = os.path.join(ganesha.folder, "set")
    files = [os.path.join(at, n) for at, _, names in os.walk(top) for n in names if n[0] == "f"]
    assert len(files) == 60
    assert {os.path.getsize(path) for path in files} == {16384}
    made = {path: os.stat(path).st_ino for path in files}
    good(load(keys + ",populate=no"))
    assert {path: os.stat(path).st_ino for path in files} == made
    # libnfs reads through the server what is in the server's folder.
    inside = os.path.relpath(files[0], ganesha.folder)
    url = f"nfs://{nfs.SERVER_ADDRESS}{ganesha.pseudo}/{inside}?version=4&nfsport={nfs.NFS_PORT}"
    status = net.run(
        ["sh", "-c", f"{process.tool('nfs-cat')} '{url}' | cmp - {files[0]} && echo the same"]
    )
    assert "the same" in status.stdout


def test_the_versions_share_a_set(load, ganesha):
    """What one version wrote the other ones verify."""
    mix = f"concurrency=4,connections=2,{SET},verify=yes,mix=read:1 write:1"
    for version in ("4.1", "4.0", "4.1"):
        good(load(f"version={version},{mix}"))


@pytest.mark.parametrize("version", VERSIONS)
def test_verification_passes_and_finds_damage(net, ganesha, version):
    mix = f"version={version},concurrency=8,connections=2,{SET},verify=yes,mix=read:2 write:1"
    flow = Load(net, ganesha, mix, extra=("--seed", "5")).result()
    good(flow)
    assert flow["verified"] > 0
    # Behind the server's back, in every file: the server's own cache holds no data.
    for at, _, names in os.walk(os.path.join(ganesha.folder, "set")):
        for name in names:
            if name[0] == "f":
                with open(os.path.join(at, name), "r+b") as file:
                    file.seek(4096 + 100)
                    file.write(b"damage")
    reads = Load(net, ganesha, mix.replace("read:2 write:1", "read:1") + ",populate=no")
    status = reads.process.wait(60)
    with open(reads.path) as file:
        flow = json.load(file)["flows"][0]
    assert flow["outcomes"]["corrupt"] > 0, f"ended with {status}: {reads.process.log()}"
    assert "wrong data read" in reads.process.log()


@pytest.mark.parametrize("version", VERSIONS)
def test_through_the_proxy(load, spillway, ganesha, net, version):
    port = process.free_port()
    proxy = spillway(nfs.proxy_config(port), net=net)
    flow = load(
        f"version={version},concurrency=8,connections=2,{SET},verify=yes,mix=mail", port=port
    )
    good(flow)
    assert proxy.metric("spillway_pool_errors_total", pool="farm") == 0


def test_large_transfers(load, ganesha):
    """More than one receive buffer, and more than the server takes at once."""
    one_file(ganesha, 8 << 20)
    for version in VERSIONS:
        for operation in ("read", "write"):
            flow = load(
                f"version={version},concurrency=2,op={operation},transfer=1MiB", duration="500ms"
            )
            good(flow)
            moved = flow["bytes_in"] + flow["bytes_out"]
            assert moved == (1 << 20) * flow["outcomes"]["ok"]


@pytest.mark.parametrize("slots", [300])
def test_more_clients_than_the_server_grants_slots(load, ganesha, slots):
    one_file(ganesha)
    good(load(f"version=4.1,concurrency={slots},connections=1,op=getattr"))


def test_what_is_not_there_is_named(net, ganesha):
    one_file(ganesha)
    load = Load(net, ganesha, "version=4.1,concurrency=1,op=read,file=nothing")
    process.wait_until(
        lambda: re.search(r"flow x: .*NFS4ERR_NOENT \(2\)", load.process.log())
        or not load.process.running(),
        "the message",
    )
    assert "NFS4ERR_NOENT (2)" in load.process.log()
    load.process.kill()


def running(load):
    """The load has begun: its table says so line by line."""
    process.wait_until(
        lambda: '"second"' in load.process.log() or not load.process.running(), "the first second"
    )
    assert load.process.running(), load.process.log()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_server_behind_the_proxy_is_killed_and_comes_back(spillway, net, ganesha, version):
    """The connection to the proxy may outlive the session on the server."""
    port = process.free_port()
    spillway(nfs.proxy_config(port), net=net)
    load = Load(
        net,
        ganesha,
        f"version={version},concurrency=8,connections=2,{SET},mix=read:4 write:4 create:1 remove:1",
        duration="6s",
        port=port,
        extra=("--live=json",),
    )
    running(load)
    ganesha.crash()
    ganesha.start()
    flow = load.result()
    assert set(errors(flow)) <= {"connection_lost", "refused"}
    assert flow["series"]["done"][-2] > 0, flow["series"]["done"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_server_is_killed_and_comes_back(net, ganesha, version):
    load = Load(
        net,
        ganesha,
        f"version={version},concurrency=8,connections=2,{SET},verify=yes,"
        "mix=read:4 write:4 create:1 remove:1",
        duration="6s",
        extra=("--live=json",),
    )
    running(load)
    ganesha.crash()
    ganesha.start()
    flow = load.result()
    assert flow["reconnects"] >= 1
    assert set(errors(flow)) <= {"connection_lost"}
    assert errors(flow)["connection_lost"] <= 8
    assert flow["outcomes"]["corrupt"] == 0
    assert flow["verified"] > 0


@pytest.fixture(scope="module")
def graceful():
    """A server of its own, which has a grace period."""
    if nfs.left_out():
        pytest.skip("left out: SPILLWAY_TEST_NFS=no")
    network = nfs.Net()
    server = nfs.Ganesha(network, graceless=False)
    yield network, server
    server.close()
    network.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_grace_period_is_waited_for(graceful, version):
    net, server = graceful
    if not server.server.running():
        server.start()
    server.new_folder()
    one_file(server)
    load = Load(
        net,
        server,
        f"version={version},concurrency=4,connections=2,mix=create:1 read:1",
        duration="10s",
        extra=("--live=json",),
    )
    running(load)
    server.crash()
    server.start()
    flow = load.result()
    assert set(errors(flow)) <= {"connection_lost"}
    assert flow["reconnects"] >= 1
    made = [kind for kind in flow["kinds"] if kind["name"] == "create"]
    assert made[0]["outcomes"]["ok"] > 0
    assert os.listdir(server.folder) == ["data"]
