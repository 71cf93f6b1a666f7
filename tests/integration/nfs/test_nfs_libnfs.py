# SPDX-License-Identifier: Apache-2.0
"""libnfs' tools against nfs-ganesha through the proxy. SPILLWAY_TEST_NFS_MIB sets the size of the
large copy."""
import os

import pytest

from lab import nfs, process, rpc

SIZE = int(os.environ.get("SPILLWAY_TEST_NFS_MIB", "1024")) << 20
ADDRESS = nfs.SERVER_ADDRESS


@pytest.fixture
def road(spillway, ganesha, net):
    """road(...) gives (port, proxy)."""

    def build(**options):
        port = process.free_port()
        return port, spillway(nfs.proxy_config(port, **options), net=net)

    return build


def checksum(path):
    return process.run(["sha256sum", path]).stdout.split()[0]


def random_file(path, size):
    process.run(["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={size >> 20}"])
    return checksum(path)


def test_ls_lists_the_export(road, ganesha, net):
    port, _ = road()
    for name in ("alpha", "beta", "gamma"):
        with open(os.path.join(ganesha.folder, name), "w") as file:
            file.write(name)
    listing = nfs.libnfs(net, "nfs-ls", nfs.url(ganesha, "", port)).stdout
    assert {line.split()[-1] for line in listing.splitlines() if line.strip()} == {
        "alpha",
        "beta",
        "gamma",
    }


def test_cat_prints_the_file(road, ganesha, net):
    port, _ = road()
    with open(os.path.join(ganesha.folder, "text"), "w") as file:
        file.write("a line\n" * 10000)
    assert nfs.libnfs(net, "nfs-cat", nfs.url(ganesha, "text", port)).stdout == "a line\n" * 10000


def test_copy_both_ways_keeps_the_checksum(road, ganesha, net):
    port, proxy = road()
    here = process.scratch(parent="/dev/shm")
    there = os.path.join(ganesha.folder, "copy")
    wanted = random_file(f"{here}/sent", SIZE)
    before = proxy.resident_bytes()
    nfs.libnfs(net, "nfs-cp", f"{here}/sent", nfs.url(ganesha, "copy", port), deadline_s=300)
    assert checksum(there) == wanted
    os.unlink(f"{here}/sent")
    nfs.libnfs(net, "nfs-cp", nfs.url(ganesha, "copy", port), f"{here}/received", deadline_s=300)
    assert checksum(f"{here}/received") == wanted
    os.unlink(f"{here}/received")
    assert proxy.resident_bytes() - before < 64 << 20
    assert proxy.metric("spillway_pool_bytes_in_total", pool="farm") >= SIZE
    assert proxy.metric("spillway_pool_bytes_out_total", pool="farm") >= SIZE
    assert proxy.metric("spillway_pool_errors_total", pool="farm") == 0


def test_four_copies_at_once(road, ganesha, net):
    port, _ = road(server={"depth": 4})
    here = process.scratch(parent="/dev/shm")
    sums = [random_file(f"{here}/{n}", 32 << 20) for n in range(4)]
    copies = [
        net.start(
            f"nfs-cp-{n}",
            [process.tool("nfs-cp"), f"{here}/{n}", nfs.url(ganesha, f"copy{n}", port)],
        )
        for n in range(4)
    ]
    assert [copy.wait(120) for copy in copies] == [0] * 4
    assert [checksum(os.path.join(ganesha.folder, f"copy{n}")) for n in range(4)] == sums


def test_version_4_lists_and_reads(road, ganesha, net):
    port, _ = road()
    with open(os.path.join(ganesha.folder, "text"), "w") as file:
        file.write("over version 4\n")
    url = f"nfs://{ADDRESS}{ganesha.pseudo}/text?version=4&nfsport={port}"
    assert nfs.libnfs(net, "nfs-cat", url).stdout == "over version 4\n"
    listing = nfs.libnfs(
        net, "nfs-ls", f"nfs://{ADDRESS}{ganesha.pseudo}?version=4&nfsport={port}"
    ).stdout
    assert "text" in listing


# ------------------------------------------------ raw calls against the real server


@pytest.fixture
def raw(road, ganesha, net, closing):
    """(raw client through the proxy, root handle)."""
    port, _ = road()
    one = closing(rpc.Client(net.connect(port)))
    return one, one.mount(ganesha.folder)


def test_one_byte_writes_and_reads(raw):
    one, root = raw
    file = one.create(root, "small")
    for offset in range(200):
        assert one.write(file, offset, bytes([offset]), rpc.UNSTABLE) == 1
    assert one.read(file, 0, 200) == bytes(range(200))
    assert b"".join(one.read(file, offset, 1) for offset in range(200)) == bytes(range(200))


@pytest.mark.parametrize("fragment", [1, 2048])
def test_fragments_a_real_server_would_refuse_are_joined(raw, fragment):
    one, root = raw
    file = one.create(root, "pieces")
    assert one.write(file, 0, b"z" * 20000, fragment=fragment) == 20000
    assert one.read(file, 19990, 100, fragment=fragment) == b"z" * 10


def test_unknown_compound_operation_gets_the_servers_answer(raw):
    one, _ = raw
    assert one.compound(0, rpc.PUTROOTFH, rpc.u32(4242)).u32() == 10044


def test_auth_tls_probe_then_plain_calls(raw):
    one, root = raw
    one.send(rpc.call(999, rpc.NFS, 3, rpc.NULL, b"", rpc.u32(rpc.AUTH_TLS, 0)))
    assert b"STARTTLS" not in one.receive()
    assert one.getattr_size(root) >= 0


def test_same_xids_of_two_clients_on_one_server(road, ganesha, net, closing):
    port, _ = road()
    one, two = (closing(rpc.Client(net.connect(port))) for _ in range(2))
    root = one.mount(ganesha.folder)
    two.xids = iter(range(2, 1000))
    files = [client.create(root, name) for client, name in ((one, "one"), (two, "two"))]
    for n in range(50):
        one.write(files[0], n, b"1", rpc.UNSTABLE), two.write(files[1], n, b"2", rpc.UNSTABLE)
    assert (one.read(files[0], 0, 100), two.read(files[1], 0, 100)) == (b"1" * 50, b"2" * 50)


def test_clients_that_come_and_go_leave_no_server_connection(road, ganesha, net):
    port, _ = road()
    for _ in range(20):
        with rpc.Client(net.connect(port)) as one:
            one.mount(ganesha.folder)
    process.wait_until(
        lambda: not nfs.connections(net, nfs.NFS_PORT) and not nfs.connections(net, nfs.MOUNT_PORT),
        "every server connection closed",
    )
