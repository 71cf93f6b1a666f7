# SPDX-License-Identifier: Apache-2.0
"""spillload's NFSv3 flows over file sets on nfs-ganesha: what it writes is read by others (libnfs, and
the server's own disk) and compared with a reference written from loadgen/fileset/fileset.h."""
import glob
import json
import os
import re
import struct


from lab import nfs, process

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
BLOCK = 4096


# ------------------------------------------------------------------ the reference


def scrambled(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def block_of(seed, file, block, version):
    key = scrambled((seed + GOLDEN) & MASK)
    key = scrambled((key + file) & MASK)
    key = scrambled(key ^ (block * GOLDEN & MASK))
    key = scrambled((key + version) & MASK)
    words = [scrambled((key + i * GOLDEN) & MASK) for i in range(1, 509)]
    return struct.pack("<I4sQQQ508Q", version, b"SpLd", file, block, key, *words)


def contents(seed, file, size, version=0):
    blocks = [block_of(seed, file, b, version) for b in range((size + BLOCK - 1) // BLOCK)]
    return b"".join(blocks)[:size]


def versions_on_disk(path, seed, file):
    """The versions of a file's blocks; every block must be one of this file, whole."""
    with open(path, "rb") as data:
        bytes_there = data.read()
    versions = []
    for number in range(0, (len(bytes_there) + BLOCK - 1) // BLOCK):
        block = bytes_there[number * BLOCK : (number + 1) * BLOCK]
        versions.append(struct.unpack("<I", block[:4])[0])
        assert block == block_of(seed, file, number, versions[-1])[: len(block)], (path, number)
    return versions


# ------------------------------------------------------------------ running it


def load(net, *flows, duration="300ms", check=True, extra=()):
    """Runs spillload in the network; (process, {flow name: figures})."""
    path = os.path.join(process.scratch(), "summary.json")
    argv = [process.program("spillload"), "--json", path, "--duration", duration, "--drain", "20s"]
    for flow in flows:
        argv += ["--flow", flow]
    done = net.run([*argv, *extra], check=check)
    assert "Sanitizer" not in done.stderr, done.stderr
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return done, {}
    with open(path) as file:
        return done, {flow["name"]: flow for flow in json.load(file)["flows"]}


def flow_text(ganesha, name="f", port=nfs.NFS_PORT, **keys):
    keys = {"concurrency": 8, **keys}
    keys = {key.replace("_", "-"): value for key, value in keys.items()}
    return f"name={name},proto=nfs,target={nfs.SERVER_ADDRESS}:{port},export={ganesha.folder}" + "".join(
        f",{key}={value}" for key, value in keys.items()
    )


def files_of(ganesha, root="set"):
    found = sorted(glob.glob(os.path.join(ganesha.folder, root, "**", "f????????"), recursive=True))
    return {int(os.path.basename(path)[1:]): path for path in found}


def all_good(flow, but=()):
    """Every request was answered well, of `but` nearly every one."""
    failed = {kind["name"]: kind["outcomes"] for kind in flow["kinds"]}
    forgiven = sum(failed[name]["nfs_error"] for name in but if name in failed)
    assert flow["outcomes"]["ok"] + forgiven == flow["offered"] > 0, json.dumps(failed)
    assert forgiven < flow["offered"] / 100
    assert flow["unfinished"] == 0


def kinds(flow):
    return {kind["name"]: kind["outcomes"]["ok"] for kind in flow["kinds"]}




# ------------------------------------------------------------------ sets


def test_a_set_is_made_and_others_read_the_same(ganesha, net):
    _, flows = load(
        net,
        flow_text(ganesha, op="read", files=60, depth=2, width=3, size="exponential:30000",
                  set_seed=9),
    )
    all_good(flows["f"])
    made = files_of(ganesha)
    assert sorted(made) == list(range(60))
    for number, path in made.items():
        leaf = number % 9
        assert path.endswith(f"/set/d{leaf // 3}/d{leaf % 3}/f{number:08}")
        with open(path, "rb") as file:
            assert file.read() == contents(9, number, os.path.getsize(path))
    assert len({os.path.getsize(path) for path in made.values()}) > 50
    name = os.path.relpath(made[7], ganesha.folder)
    here = os.path.join(process.scratch(), "copy")
    nfs.libnfs(net, "nfs-cp", nfs.url(ganesha, name, nfs.NFS_PORT, nfs.MOUNT_PORT), here)
    with open(here, "rb") as file:
        assert file.read() == contents(9, 7, os.path.getsize(made[7]))


def test_a_set_that_is_there_is_used_again(ganesha, net):
    flow = flow_text(ganesha, op="getattr", files=40, size=5000, set="deep/er")
    load(net, flow)
    before = {path: os.stat(path).st_mtime_ns for path in files_of(ganesha, "deep/er").values()}
    assert len(before) == 40
    _, flows = load(net, flow + ",populate=no")
    all_good(flows["f"])
    assert before == {path: os.stat(path).st_mtime_ns for path in before}
    done, _ = load(net, flow + ",set-seed=2", check=False)
    assert done.returncode == 1
    assert 'holds another set at deep/er ("seed 1" there, "seed 2" wanted)' in done.stderr
    done, _ = load(net, flow.replace("deep/er", "none") + ",populate=no", check=False)
    assert done.returncode == 1
    assert "has no whole file set at none" in done.stderr
    assert before == {path: os.stat(path).st_mtime_ns for path in before}


def test_a_set_half_made_is_made_whole(ganesha, net):
    flow = flow_text(ganesha, op="read", files=30, size=9000)
    load(net, flow)
    made = files_of(ganesha)
    os.remove(os.path.join(ganesha.folder, "set", ".spillload-set"))
    with open(made[3], "r+b") as file:
        file.truncate(5)
    os.remove(made[4])
    ganesha.crash()  # its caches too
    ganesha.start()
    _, flows = load(net, flow)
    all_good(flows["f"])
    for number in (3, 4):
        with open(made[number], "rb") as file:
            assert file.read() == contents(1, number, 9000)


def test_two_flows_make_one_set(ganesha, net):
    done, flows = load(
        net,
        flow_text(ganesha, "a", op="read", files=300, size=2000),
        flow_text(ganesha, "b", op="getattr", files=300, size=2000),
    )
    all_good(flows["a"])
    all_good(flows["b"])
    assert len(files_of(ganesha)) == 300
    done, _ = load(
        net,
        flow_text(ganesha, "a", op="read", files=300, size=2000),
        flow_text(ganesha, "b", op="read", files=301, size=2000),
        check=False,
    )
    assert done.returncode != 0
    assert "flow a has another set at set" in done.stderr


# ------------------------------------------------------------------ mixes


def test_the_mix_is_as_its_weights_say(ganesha, net):
    weights = {"read": 18, "write": 11, "getattr": 26, "lookup": 24, "access": 11, "setattr": 4,
               "readdir": 3, "create": 2, "remove": 2, "commit": 1, "fsstat": 1}
    mix = " ".join(f"{name}:{weight}" for name, weight in weights.items())
    done, flows = load(
        net, flow_text(ganesha, files=50, size="20000", mix=mix, popularity="zipf:0.9"),
        duration="2s")
    flow = flows["f"]
    # Ganesha 4.3 fails a READDIR now and then when the directory changes under it.
    all_good(flow, but=["readdir"])
    counts = kinds(flow)
    assert set(counts) == set(weights)
    # REMOVE becomes CREATE when there is nothing to remove: together they have their share.
    counts["create"] += counts.pop("remove")
    weights["create"] += weights.pop("remove")
    total, whole = sum(counts.values()), sum(weights.values())
    chi = sum((counts[n] - total * w / whole) ** 2 / (total * w / whole) for n, w in weights.items())
    assert total > 1000
    assert chi < 31.4, (chi, counts)  # 9 degrees of freedom, 1 in 4000
    # What it made it has removed, but nothing else.
    names = [name for _, _, names in os.walk(ganesha.folder) for name in names]
    assert len(names) == 51 and not [name for name in names if name.startswith(".spillload-f")]
    assert "could not" not in done.stderr


def test_the_same_seed_sends_the_same_requests(ganesha, net):
    """By number: operation and file; seen in the counts of a run of a fixed number of requests."""
    keys = dict(files=20, size=8000, mix="read:5 getattr:3 lookup:2", rate="400/s",
                arrival="constant", seed=5, transfer="uniform:3000")
    _, first = load(net, flow_text(ganesha, **keys), duration="500ms")
    _, second = load(net, flow_text(ganesha, **keys), duration="500ms")
    _, third = load(net, flow_text(ganesha, **{**keys, "seed": 6}), duration="500ms")
    figures = [(kinds(run["f"]), run["f"]["bytes_in"]) for run in (first, second, third)]
    assert figures[0] == figures[1]
    assert figures[0] != figures[2]


def test_one_existing_file_is_worked_on_without_a_set(ganesha, net):
    path = os.path.join(ganesha.folder, "data")
    with open(path, "wb") as file:
        file.write(b"x" * 100000)
    _, flows = load(
        net,
        flow_text(ganesha, "r", op="read", transfer=10000, order="sequential"),
        flow_text(ganesha, "m", mix="getattr:1 lookup:1 create:1 remove:1 readdir:1 fsstat:1"),
    )
    all_good(flows["r"])
    all_good(flows["m"], but=["readdir"])
    assert flows["r"]["bytes_in"] == 10000 * flows["r"]["offered"]
    assert os.listdir(ganesha.folder) == ["data"]
    _, flows = load(net, flow_text(ganesha, "w", op="write", transfer=10000))
    with open(path, "rb") as file:
        assert re.fullmatch(rb"[a-zx]{100000}", file.read())


# ------------------------------------------------------------------ verification


VERIFYING = dict(files=25, size="uniform:60000", transfer="uniform:20000", mix="read:1 write:1",
                 verify="yes", concurrency=6)


def test_what_is_read_is_what_was_written(ganesha, net):
    total = 0
    for run in range(3):
        order = ("random", "sequential", "random")[run]
        stable = ("yes", "yes", "no")[run]
        extra = {"mix": "read:5 write:5 commit:1"} if run == 2 else {}
        _, flows = load(
            net, flow_text(ganesha, **{**VERIFYING, "order": order, "stable": stable, **extra}),
            duration="700ms")
        flow = flows["f"]
        all_good(flow)
        assert flow["verified"] + flow["unverified"] == kinds(flow)["read"]
        assert flow["verified"] > flow["unverified"]
        total += flow["verified"]
    assert total > 300
    written = set()
    for number, path in files_of(ganesha).items():
        written.update(versions_on_disk(path, 1, number))
    assert len(written) > 3


def test_wrong_data_is_found_and_named(ganesha, net):
    keys = dict(files=10, size=50000, transfer="50000", op="read", verify="yes")
    _, flows = load(net, flow_text(ganesha, **keys))
    all_good(flows["f"])
    assert flows["f"]["verified"] == flows["f"]["offered"]
    path = files_of(ganesha)[6]
    with open(path, "r+b") as file:
        file.seek(12345)
        byte = file.read(1)[0]
        file.seek(12345)
        file.write(bytes([byte ^ 0x20]))
    done, flows = load(net, flow_text(ganesha, **keys))
    flow = flows["f"]
    wrong = flow["outcomes"]["corrupt"]
    assert 0 < wrong < flow["offered"] and wrong + flow["outcomes"]["ok"] == flow["offered"]
    assert done.stderr.count("wrong data read") == 1
    assert "f00000006: byte 12345 is" in done.stderr and "stamp is right" in done.stderr


def test_a_lost_write_is_found(ganesha, net, closing):
    """A block is put back to what it was while the load runs."""
    keys = dict(files=1, size=8192, transfer=4096, mix="read:50 write:1", verify="yes",
                concurrency=1, depth=0)
    load(net, flow_text(ganesha, **{**keys, "op": "read"}).replace("mix=read:50 write:1,", ""))
    path = files_of(ganesha)[0]
    summary = os.path.join(process.scratch(), "summary.json")
    running = net.start(
        "spillload",
        [process.program("spillload"), "--json", summary, "--duration", "20s", "--flow",
         flow_text(ganesha, **keys)])
    try:
        process.wait_until(lambda: max(versions_on_disk(path, 1, 0)) > 3, "writes came")
        while "wrong data" not in running.log():
            with open(path, "r+b") as file:
                file.write(block_of(1, 0, 0, 1))
            assert running.running(), running.log()
    finally:
        running.kill()
    assert "f00000000" in running.log() and "block 0, version 1" in running.log()


def test_a_server_that_is_killed_loses_nothing_that_was_stable(ganesha, net):
    keys = {**VERIFYING, "timeout": "60s"}
    summary = os.path.join(process.scratch(), "summary.json")
    running = net.start(
        "spillload",
        [process.program("spillload"), "--json", summary, "--duration", "600s", "--live=json",
         "--drain", "30s", "--flow", flow_text(ganesha, **keys)])

    def seconds():
        return [line for line in running.log().splitlines() if line.startswith("{")]

    for _ in range(2):
        before = len(seconds())
        process.wait_until(lambda: len(seconds()) > before + 1, "the load runs", 60)
        ganesha.crash()
        ganesha.start()
    before = len(seconds())
    process.wait_until(lambda: len(seconds()) > before + 2, "the load goes on", 60)
    running.send_signal(2)
    running.wait(60)
    with open(summary) as file:
        flow = json.load(file)["flows"][0]
    assert flow["outcomes"]["corrupt"] == 0, running.log()[-2000:]
    assert "wrong data" not in running.log()
    assert flow["outcomes"]["connection_lost"] > 0 and flow["reconnects"] >= 2
    assert flow["verified"] > 100
    for number, path in files_of(ganesha).items():
        versions_on_disk(path, 1, number)


def test_handles_that_went_stale_are_looked_up_again(ganesha, net):
    """The set is moved away and another copy of it put there: files are others by their handles."""
    keys = dict(files=10, size=5000, mix="read:1 getattr:1 lookup:1", concurrency=2)
    summary = os.path.join(process.scratch(), "summary.json")
    load(net, flow_text(ganesha, **keys))
    running = net.start(
        "spillload",
        [process.program("spillload"), "--json", summary, "--duration", "600s", "--live=json",
         "--flow", flow_text(ganesha, **keys)])

    def done():
        lines = [line for line in running.log().splitlines() if line.startswith("{")]
        return len(lines)

    process.wait_until(lambda: done() > 0, "the load runs")
    ganesha.crash()
    old = os.path.join(ganesha.folder, "set")
    process.run(["cp", "-a", old, old + ".copy"])
    process.run(["rm", "-r", old])
    os.rename(old + ".copy", old)
    ganesha.start()
    before = done()
    process.wait_until(lambda: done() > before + 2, "the load goes on", 60)
    running.send_signal(2)
    running.wait(60)
    with open(summary) as file:
        flow = json.load(file)["flows"][0]
    assert flow["outcomes"]["nfs_error"] == 0, flow["outcomes"]
    last = json.loads([x for x in running.log().splitlines() if x.startswith("{")][-1])
    assert flow["outcomes"]["ok"] > 0, last


def test_through_the_proxy_all_is_the_same(spillway, ganesha, net):
    port = process.free_port()
    spillway(nfs.proxy_config(port), net=net)
    _, flows = load(
        net, flow_text(ganesha, port=port, **{**VERIFYING, "mix": "read:4 write:4 create:1 remove:1"}),
        duration="700ms")
    all_good(flows["f"])
    assert flows["f"]["verified"] > 20
    for number, path in files_of(ganesha).items():
        versions_on_disk(path, 1, number)
