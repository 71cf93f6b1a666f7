# SPDX-License-Identifier: Apache-2.0
"""A real Linux kernel client (user-mode Linux) mounts nfs-ganesha through the proxy and works on
it."""
import os
import random

import pytest

from lab import nfs, process, rpc

PORT = 2049


@pytest.fixture
def proxy(spillway, ganesha, net):
    return spillway(nfs.proxy_config(PORT), net=net)


@pytest.fixture(scope="module")
def tree():
    """A folder of files of all sizes, empty ones, folders and symbolic links, and its checksum."""
    top = process.scratch("spillway-tree-")
    chance = random.Random(20)
    for folder in range(8):
        path = os.path.join(top, f"folder{folder}", "below")
        os.makedirs(path)
        for number in range(10):
            with open(os.path.join(path, f"file{number}"), "wb") as file:
                file.write(chance.randbytes(int(2 ** chance.uniform(0, 18)) - 1))
        os.symlink("file1", os.path.join(path, "link"))
    with open(os.path.join(top, "large"), "wb") as file:
        file.write(chance.randbytes((5 << 20) + 1))
    os.chmod(top, 0o755)
    return top, digest(top)


# Few processes: starting one is slow in user-mode Linux.
DIGEST = "{ find . | sort; find . -type f -o -type l | sort | xargs cat; } | sha256sum"


def digest(top):
    return process.run(["sh", "-c", DIGEST], cwd=top).stdout.split()[0]


@pytest.mark.parametrize("version", ["3", "4.0", "4.1"])
def test_kernel_mounts_and_copies_a_tree(proxy, ganesha, net, tree, version):
    top, wanted = tree
    status, output = nfs.kernel_job(
        net,
        f"""
set -e
{nfs.mount_command(ganesha, "/mnt/n", version, PORT)}
cp -a {top} /mnt/n/tree
ln -s tree /mnt/n/alias
mkdir /mnt/n/d && touch /mnt/n/d/x && mv /mnt/n/d/x /mnt/n/d/y && rm /mnt/n/d/y && rmdir /mnt/n/d
sync
echo 3 > /proc/sys/vm/drop_caches
cd /mnt/n/alias
echo DIGEST $({DIGEST})
cd /
umount /mnt/n
""",
    )
    assert status == 0, output
    assert f"DIGEST {wanted}" in output, output
    assert digest(os.path.join(ganesha.folder, "tree")) == wanted
    assert sorted(os.listdir(ganesha.folder)) == ["alias", "tree"]
    assert proxy.metric("spillway_pool_errors_total", pool="farm") == 0
    process.wait_until(
        lambda: not nfs.connections(net, PORT), "no connection left after unmounting"
    )


def test_kernel_appends_truncates_and_maps(proxy, ganesha, net):
    status, output = nfs.kernel_job(
        net,
        f"""
set -e
{nfs.mount_command(ganesha, "/mnt/n", "3", PORT)}
cd /mnt/n
i=0; while [ $i -lt 300 ]; do echo line $i >> log; i=$((i + 1)); done
dd if=/dev/zero of=hole bs=1 count=1 seek=10000000
dd if=log of=copy bs=7
truncate -s 100 copy
sync
""",
    )
    assert status == 0, output
    lines = "".join(f"line {n}\n" for n in range(300))
    read = lambda name: open(os.path.join(ganesha.folder, name)).read()  # noqa: E731
    assert read("log") == lines
    assert read("copy") == lines[:100]
    assert os.path.getsize(os.path.join(ganesha.folder, "hole")) == 10000001


@pytest.mark.parametrize("version", ["3", "4.1"])
def test_kernel_waits_out_a_full_queue(spillway, ganesha, net, closing, version):
    """JUKEBOX and DELAY are words a real client takes as `later`: the job is slow, not wrong."""
    proxy = spillway(
        nfs.proxy_config(PORT, pool={"queue": {"limit": 1}}, server={"depth": 1}), net=net
    )
    with open(os.path.join(ganesha.folder, "text"), "w") as file:
        file.write("patience\n")
    home = process.scratch()
    job = nfs.KernelJob(
        net,
        f"""
set -e
{nfs.mount_command(ganesha, "/mnt/n", version, PORT, options="lookupcache=none,noac")}
ls /mnt/n
echo MOUNTED
until [ -e {home}/go ]; do sleep 0.1; done
cat /mnt/n/text
""",
    )
    job.says("MOUNTED", 120)
    filler = closing(rpc.Client(net.connect(PORT)))
    root = filler.mount(ganesha.folder)
    ganesha.server.send_signal(19)
    try:
        for xid in (901, 902):
            filler.send(rpc.call(xid, rpc.NFS, 3, rpc.GETATTR, rpc.opaque(root)))
        proxy.wait_metric("spillway_pool_queue_length", 1, pool="farm")
        open(f"{home}/go", "w").close()
        proxy.wait_metric("spillway_pool_refused_total", lambda count: count >= 1, pool="farm")
    finally:
        ganesha.server.send_signal(18)
    assert {filler.reply().xid, filler.reply().xid} == {901, 902}
    status, output = job.result()
    assert (status, "patience" in output) == (0, True), output


def test_two_mounts_share_one_proxy(proxy, ganesha, net):
    """Version 3 and 4.1 at the same time, reading what the other wrote."""
    status, output = nfs.kernel_job(
        net,
        f"""
set -e
{nfs.mount_command(ganesha, "/mnt/a", "3", PORT)}
{nfs.mount_command(ganesha, "/mnt/b", "4.1", PORT)}
dd if=/dev/urandom of=/mnt/a/x bs=1M count=8 && sync
dd if=/dev/urandom of=/mnt/b/y bs=1M count=8 && sync
cmp /mnt/a/x /mnt/b/x && cmp /mnt/a/y /mnt/b/y
""",
    )
    assert status == 0, output
