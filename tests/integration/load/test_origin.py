# SPDX-License-Identifier: Apache-2.0
"""spillorigin for its own sake: each setting from the command line and while it runs, factorisation, and
its NFS side with raw calls, libnfs, our own file sets and a Linux kernel."""
import hashlib
import http.client
import itertools
import json
import math
import os
import random
import select
import signal
import socket
import threading

import pytest

from lab import nfs, process, rpc
from lab.rpc import opaque, u32, u64

NFS3ERR_EXIST, NFS3ERR_NOTDIR, NFS3ERR_ISDIR = 17, 20, 21
NFS3ERR_NOSPC, NFS3ERR_STALE, NFS3ERR_NOTEMPTY, NFS3ERR_NOENT = 28, 70, 66, 2
NO_ATTRIBUTES = u32(0, 0, 0, 0, 0, 0)


class SpillOrigin:
    """A running spillorigin on ports of its own choice."""

    def __init__(self, *options):
        self.process = process.Process("spillorigin", [
            process.program("spillorigin"), "--http", "127.0.0.1:0", "--nfs", "127.0.0.1:0", *options])
        self.process.wait_log("ready\n")
        line = self.process.log().splitlines()[0]
        assert line.startswith("listening ")
        self.address = dict(word.split("=") for word in line.split()[1:])
        self.http_port, self.nfs_port = (int(self.address[p].rsplit(":", 1)[1]) for p in ("http", "nfs"))

    def connect(self):
        return http.client.HTTPConnection(self.address["http"], timeout=process.PATIENCE_S)

    def request(self, method, path, body=None):
        """Status, fields and body."""
        connection = self.connect()
        connection.request(method, path, body)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, reply.headers, data

    def set(self, name, value, protocol=None):
        query = f"value={value.replace(' ', '+')}" + (f"&protocol={protocol}" if protocol else "")
        status, _, data = self.request("PUT", f"/_origin/{name}?{query}")
        assert status == 200, data
        return json.loads(data)

    def stats(self, protocol="http"):
        status, _, text = self.request("GET", "/_origin/stats")
        assert status == 200
        return json.loads(text)[protocol]

    def url(self, path=""):
        return f"nfs://127.0.0.1/export{path}?nfsport={self.nfs_port}&mountport={self.nfs_port}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, self.process.log()
        assert "Sanitizer" not in self.process.log(), self.process.log()


@pytest.fixture
def origin():
    """origin(options...) starts one; each must end with status 0 and without a sanitizer's report."""
    started = []

    def start(*options):
        started.append(SpillOrigin(*options))
        return started[-1]
    yield start
    for one in started:
        one.stop()


def nfs_client(origin):
    client = rpc.Client(origin.nfs_port)
    return client, client.mount("/export")


def status_of(client, procedure, arguments):
    return client.nfs3(procedure, arguments).results.u32()


# ------------------------------------------------------------------ the command line and the admin paths


@pytest.mark.parametrize("arguments, message", [
    (["--slots", "many"], "a number of slots"),
    (["--service", "10"], "a time with its unit"),
    (["--service", "lognormal:10ms"], "a distribution"),
    (["--service", "list:/nowhere"], "/nowhere: No such file"),
    (["--work", "gpu"], "wait or cpu"),
    (["--schedule", "50% 20%"], "steps of 1ms at least, as"),
    (["--schedule", "100/s:1s 50/s"], "rates need a service time"),
    (["--stall", "every=1s,for=2s"], "longer than they last"),
    (["--error", "1%:200"], "shares as"),
    (["--error", "60%", "--error", "60%"], "no more than 100%"),
    (["--slow-body", "0"], "bytes per second"),
    (["--first-byte", "5"], "a time with its unit"),
    (["--retry-after", "x"], "whole seconds"),
    (["--memory", "much"], "a size"),
])
def test_a_wrong_option_is_status_2_with_a_reason(arguments, message):
    done = process.run([process.program("spillorigin"), "--http", "127.0.0.1:0", *arguments], check=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("method, path, status", [
    ("PUT", "/_origin/slots", 400), ("PUT", "/_origin/slots?n=x", 400), ("PUT", "/_origin/slots?n=1&protocol=ftp", 400),
    ("PUT", "/_origin/service?mean=5", 400), ("PUT", "/_origin/service?distribution=odd", 400),
    ("PUT", "/_origin/service", 400), ("PUT", "/_origin/stats", 405), ("GET", "/_origin/nothing", 404),
    ("PUT", "/_origin/schedule?value=x", 400), ("PUT", "/_origin/schedule?value=5/s:1s+3/s", 400),
    ("PUT", "/_origin/error?value=200%25", 400), ("PUT", "/_origin/stall?value=1s", 400),
    ("PUT", "/_origin/work?value=", 400), ("PUT", "/_origin/slow-body?value=-1", 400),
    ("PUT", "/_origin/first-byte?value=1", 400), ("PUT", "/_origin/retry-after?value=1s", 400),
    ("PUT", "/_origin/error?value=1%25:503,0.5%25:reset", 200),
    ("PUT", "/_origin/service?mean=5ms&distribution=fixed", 200)])
def test_the_admin_paths_refuse_what_they_cannot_read(origin, method, path, status):
    got, _, body = origin().request(method, path)
    assert got == status
    json.loads(body)


# ------------------------------------------------------------------ service times, slots, schedules, stalls


def test_a_list_of_service_times_is_served_in_order(origin):
    path = os.path.join(process.scratch(), "times")
    with open(path, "w") as file:
        file.write("1ms\n2ms\n4ms\n")
    one = origin("--service", f"list:{path}")
    assert one.stats()["distribution"] == "list"
    connection = one.connect()
    busy_ms = []
    for _ in range(5):
        connection.request("GET", "/")
        connection.getresponse().read()
        busy_ms.append(one.stats()["busy_ns"] // 1000000)
    assert busy_ms == [1, 3, 7, 8, 10]


@pytest.mark.parametrize("text, kind, mean_ms", [
    ("lognormal:2ms:1.2", "lognormal", 2), ("bimodal:2ms", "bimodal", 2), ("uniform:2ms", "uniform", 2),
    ("exponential:2ms", "exponential", 2), ("2ms", "exponential", 2)])
def test_every_distribution_has_its_mean(origin, text, kind, mean_ms):
    one = origin("--service", text, "--slots", "1000", "--seed", "3")
    stats = one.stats()
    assert stats["distribution"] == kind and stats["mean_service_ns"] == mean_ms * 1000000
    connections = [one.connect() for _ in range(100)]
    for _ in range(10):
        for connection in connections:
            connection.request("GET", "/")
        for connection in connections:
            connection.getresponse().read()
    # 1000 draws of a fixed seed; the spread of the widest of them, lognormal, is 1.8 of its mean.
    assert 0.75 < one.stats()["busy_ns"] / 1000 / (mean_ms * 1e6) < 1.25


def test_a_schedule_changes_the_slots_and_stats_show_them(origin):
    one = origin("--slots", "10", "--schedule", "50%:1h 100%")
    assert one.stats()["slots"] == 5 and one.stats()["slots_set"] == 10
    assert one.set("schedule", "30%:1ms 7:1ms 20%:1h", "http")["nfs"]["slots"] == 5
    process.wait_until(lambda: one.stats()["slots"] == 2, "the third step")
    stats = one.stats()
    assert (stats["schedule_step"], stats["schedule_steps"]) == (2, 3)
    one.set("slots", "100")
    assert one.stats()["slots"] == 20 and one.stats("nfs")["slots"] == 50
    # Over and over: each of the two is seen again after the other.
    one.set("schedule", "3:5ms 4:5ms repeat")
    for slots in (3, 4, 3, 4):
        process.wait_until(lambda slots=slots: one.stats()["slots"] == slots, f"{slots} slots", every_s=0.001)
    one.set("schedule", "none")
    assert one.stats()["slots"] == 100
    one.set("service", "10ms")
    assert one.set("schedule", "500/s:1h 1/s")["http"]["capacity_per_s"] == 500


def test_waiting_requests_start_when_the_schedule_gives_slots(origin):
    one = origin("--slots", "4", "--service", "1ms", "--schedule", "0%:1h 100%")
    connections = [one.connect() for _ in range(6)]
    for connection in connections:
        connection.request("GET", "/")
    process.wait_until(lambda: one.stats()["waiting"] == 6, "all wait")
    one.set("schedule", "0:50ms 1")
    for connection in connections:
        assert connection.getresponse().status == 200
    assert one.stats()["completed"] == 6


def test_a_stall_holds_everything_and_then_lets_go(origin):
    one = origin("--slots", "4", "--stall", "every=1s,for=900ms")
    stop = threading.Event()
    served = itertools.count()

    def ask():
        connection = one.connect()
        while not stop.is_set():
            connection.request("GET", "/")
            assert connection.getresponse().read()
            next(served)
    thread = threading.Thread(target=ask)
    thread.start()
    # Without service time nothing is ever seen running, but in a stall.
    process.wait_until(lambda: one.stats()["stalled"] and one.stats()["running"] == 1, "a request in a stall")
    one.set("stall", "none")
    process.wait_until(lambda: not one.stats()["stalled"], "the end of the stall")
    before = one.stats()["completed"]
    process.wait_until(lambda: one.stats()["completed"] > before, "requests are served again")
    stop.set()
    thread.join()
    assert next(served) == one.stats()["completed"]


# ------------------------------------------------------------------ work


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_work_burns_processor_time(origin):
    one = origin("--work", "cpu", "--service", "fixed:100ms", "--slots", "2")
    before = cpu_s(one.process.pid)
    connections = [one.connect() for _ in range(5)]
    for connection in connections:
        connection.request("GET", "/")
    for connection in connections:
        assert connection.getresponse().status == 200
    assert cpu_s(one.process.pid) - before >= 0.48
    one.set("work", "wait")
    assert one.stats()["work"] == "wait"


def test_it_answers_while_all_slots_work_and_ends_at_once(origin):
    one = origin("--work", "cpu", "--service", "fixed:1h", "--slots", "2")
    connections = [one.connect() for _ in range(3)]
    for connection in connections:
        connection.request("GET", "/")
    process.wait_until(lambda: one.stats()["running"] == 2 and one.stats()["waiting"] == 1, "two slots at work")
    # The fixture ends it: an hour's work does not hold it up.


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def test_factors_are_found_in_slots(origin):
    one = origin("--slots", "1")
    seed = 2026
    print("seed", seed)
    draw = random.Random(seed)
    connection = one.connect()

    def factors(n):
        connection.request("GET", f"/factor?n={n}")
        reply = connection.getresponse()
        found = json.loads(reply.read())
        assert reply.status == 200 and int(found["n"]) == n
        assert found["prime"] == (len(found["factors"]) == 1)
        return [int(p) for p in found["factors"]]
    primes = [n for n in range(2, 200000) if draw.random() < 0.01 and is_prime(n)]
    for _ in range(50):
        chosen = sorted(draw.sample(primes, 3))
        assert factors(math.prod(chosen)) == chosen
    assert factors(18446744073709551557) == [18446744073709551557]
    assert factors(4294967279 * 4294967291) == [4294967279, 4294967291]
    assert factors(2 ** 63) == [2] * 63
    assert factors(1) == []
    assert one.stats()["completed"] == 54 and one.stats()["busy_ns"] > 0
    # It takes a slot: without one it waits.
    one.set("slots", "0")
    connection.request("GET", "/factor?n=15")
    process.wait_until(lambda: one.stats()["waiting"] == 1, "it waits")
    one.set("slots", "1")
    assert json.loads(connection.getresponse().read())["factors"] == ["3", "5"]


@pytest.mark.parametrize("query", ["", "?n=", "?n=0", "?n=x", "?n=-5", "?n=1.5", "?n=18446744073709551616", "?m=5"])
def test_what_is_no_number_has_no_factors(origin, query):
    one = origin()
    status, _, body = one.request("GET", f"/factor{query}")
    assert status == 400 and "error" in json.loads(body)
    assert one.stats()["submitted"] == 0


# ------------------------------------------------------------------ errors, slow replies


def test_http_errors_are_injected_by_their_share(origin):
    one = origin("--error", "25%:500", "--error", "25%:503", "--seed", "9")
    connection = one.connect()
    count = {200: 0, 500: 0, 503: 0}
    for _ in range(1000):
        connection.request("GET", "/")
        reply = connection.getresponse()
        reply.read()
        count[reply.status] += 1
        assert (reply.headers["Retry-After"] == "1") == (reply.status == 503)
    stats = one.stats()
    assert stats["injected"] == count[500] + count[503] and stats["completed"] == count[200]
    # Five standard errors of a share of a quarter.
    assert abs(count[500] - 250) < 69 and abs(count[503] - 250) < 69
    assert one.stats("nfs")["error"] == "0.25:500,0.25:503"
    one.set("error", "100%:503", "http")
    one.set("retry-after", "7")
    assert one.request("GET", "/")[1]["Retry-After"] == "7"
    one.set("retry-after", "0")
    status, fields, _ = one.request("POST", "/", b"x" * 100000)
    assert status == 503 and fields["Retry-After"] is None
    one.set("error", "none")
    assert one.request("GET", "/")[0] == 200


def test_resets_of_both_protocols(origin):
    one = origin()
    client, root = nfs_client(one)
    one.set("error", "100%:reset")
    connection = one.connect()
    connection.request("GET", "/")
    with pytest.raises(ConnectionResetError):
        connection.getresponse()
    client.send(rpc.call(99, rpc.NFS, 3, rpc.GETATTR, opaque(root)))
    with pytest.raises(ConnectionResetError):
        client.sock.recv(1)
    one.set("error", "none")
    assert one.request("GET", "/")[0] == 200
    assert one.stats()["injected"] == one.stats("nfs")["injected"] == 1


def test_nfs_errors_by_name(origin):
    one = origin("--error", "100%:nfs=IO")
    client, root = nfs_client(one)
    assert status_of(client, rpc.GETATTR, opaque(root)) == 5
    # Nothing is carried out.
    assert status_of(client, rpc.CREATE, opaque(root) + opaque("new") + u32(0) + NO_ATTRIBUTES) == 5
    one.set("error", "100%:nfs=JUKEBOX")
    assert status_of(client, rpc.READ, rpc.read_arguments(root, 0, 10)) == rpc.NFS3ERR_JUKEBOX
    one.set("error", "100%:503")
    assert status_of(client, rpc.LOOKUP, opaque(root) + opaque("new")) == NFS3ERR_NOENT
    one.set("error", "100%")
    assert status_of(client, rpc.GETATTR, opaque(root)) == rpc.NFS3ERR_JUKEBOX
    assert one.request("GET", "/")[0] == 503


def test_a_slow_body_comes_bit_by_bit(origin):
    one = origin("--slow-body", "10", "--bytes", "1000")
    with socket.create_connection(("127.0.0.1", one.http_port), process.PATIENCE_S) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        data = b""
        while len(data.partition(b"\r\n\r\n")[2]) < 1:
            data += sock.recv(65536)
        # 1000 bytes at ten a second are 100 s.
        assert len(data.partition(b"\r\n\r\n")[2]) < 900
        stats = one.set("slow-body", "none")["http"]
        assert stats["completed"] == 1 and stats["running"] == 0, "the slot is free meanwhile"
        while len(data.partition(b"\r\n\r\n")[2]) < 1000:
            data += sock.recv(65536)
        body = data.partition(b"\r\n\r\n")[2]
    assert body == one.request("GET", "/?bytes=1000")[2]
    one.set("slow-body", "100MiB")
    large = one.request("GET", "/?bytes=3000001")[2]
    one.set("slow-body", "none")
    assert large == one.request("GET", "/?bytes=3000001")[2]


def test_the_first_byte_is_waited_for(origin):
    one = origin("--first-byte", "1h")
    connection = one.connect()
    connection.request("GET", "/")
    process.wait_until(lambda: one.stats()["completed"] == 1, "it is served")
    assert not select.select([connection.sock], [], [], 0)[0], "the reply waits all the same"
    connection.close()
    one.set("first-byte", "5ms")
    assert len(one.request("GET", "/")[2]) == 128


# ------------------------------------------------------------------ NFS


def listing(client, folder, count=4096, plus=False):
    """Every name but "." and "..", in as many calls as it takes; (names, calls)."""
    names, cookie, calls = [], 0, 0
    while True:
        arguments = opaque(folder) + u64(cookie) + b"\0" * 8
        results = client.nfs3(rpc.READDIRPLUS if plus else rpc.READDIR,
                              arguments + (u32(count, count) if plus else u32(count))).results
        assert results.u32() == 0
        results.post_op_attr()
        results.u64()
        calls += 1
        while results.u32():
            results.u64()
            names.append(results.opaque().decode())
            cookie = results.u64()
            if plus:
                assert results.post_op_attr()
                assert results.u32() == 1
                results.opaque()
        if results.u32():
            return [name for name in names if name not in (".", "..")], calls


def test_directories_hold_files_of_their_own(origin):
    client, root = nfs_client(origin("--file", "data=5"))

    def mkdir(folder, name):
        results = client.nfs3(rpc.MKDIR, opaque(folder) + opaque(name) + NO_ATTRIBUTES).results
        assert results.u32() == 0 and results.u32() == 1
        return results.opaque()
    one, two = mkdir(root, "one"), mkdir(root, "two")
    deep = mkdir(one, "deep")
    first, second = client.create(one, "same"), client.create(two, "same")
    client.write(first, 0, b"first")
    client.write(second, 5, b"second")
    assert client.read(first, 0, 100) == b"first"
    assert client.read(second, 0, 100) == b"\0" * 5 + b"second"
    assert client.lookup(deep, "..") == one and client.lookup(deep, ".") == deep and client.lookup(root, "..") == root
    assert listing(client, one)[0] == ["deep", "same"]
    assert listing(client, root)[0] == ["data", "one", "two"]
    name = opaque(one) + opaque("deep")
    assert status_of(client, rpc.MKDIR, name + NO_ATTRIBUTES) == NFS3ERR_EXIST
    assert status_of(client, rpc.CREATE, name + u32(0) + NO_ATTRIBUTES) == NFS3ERR_EXIST
    assert status_of(client, rpc.CREATE, opaque(one) + opaque("same") + u32(1) + NO_ATTRIBUTES) == NFS3ERR_EXIST
    assert status_of(client, rpc.REMOVE, name) == NFS3ERR_ISDIR
    assert status_of(client, rpc.RMDIR, opaque(one) + opaque("same")) == NFS3ERR_NOTDIR
    assert status_of(client, rpc.RMDIR, opaque(root) + opaque("one")) == NFS3ERR_NOTEMPTY
    assert status_of(client, rpc.LOOKUP, opaque(first) + opaque("x")) == NFS3ERR_NOTDIR
    assert status_of(client, rpc.READ, rpc.read_arguments(one, 0, 1)) == NFS3ERR_ISDIR
    assert status_of(client, rpc.RMDIR, name) == 0
    assert status_of(client, rpc.REMOVE, opaque(one) + opaque("same")) == 0
    assert status_of(client, rpc.RMDIR, opaque(root) + opaque("one")) == 0
    assert status_of(client, rpc.GETATTR, opaque(first)) == NFS3ERR_STALE
    assert client.read(second, 5, 100) == b"second"
    # COMMIT, FSSTAT, ACCESS and SETATTR of size.
    assert status_of(client, rpc.COMMIT, opaque(second) + u64(0) + u32(0)) == 0
    assert status_of(client, rpc.FSSTAT, opaque(root)) == 0
    assert status_of(client, rpc.ACCESS, opaque(two) + u32(63)) == 0
    assert status_of(client, rpc.SETATTR, opaque(second) + u32(0, 0, 0, 1) + u64(7) + u32(0, 0, 0)) == 0
    assert client.getattr_size(second) == 7
    client.close()


@pytest.mark.parametrize("plus", [False, True])
def test_long_listings_come_in_parts(origin, plus):
    client, root = nfs_client(origin())
    names = [f"file-{number:04}-with-a-rather-long-name" for number in range(700)]
    for name in names:
        client.create(root, name)
    got, calls = listing(client, root, 8192, plus)
    assert got == ["data"] + names
    assert calls > 3
    assert listing(client, root, 1 << 20, plus)[0] == ["data"] + names
    client.close()


def test_held_back_reads_keep_what_they_read(origin):
    """A READ that waits for its slot answers with what was there when it came."""
    one = origin()
    client, root = nfs_client(one)
    handle = client.create(root, "file")
    old = os.urandom(100000)
    client.write(handle, 0, old)
    one.set("slots", "0", "nfs")
    client.send(rpc.call(77, rpc.NFS, 3, rpc.READ, rpc.read_arguments(handle, 0, 100000)))
    client.send(rpc.call(78, rpc.NFS, 3, rpc.WRITE, rpc.write_arguments(handle, 0, b"x" * 300000)))
    client.send(rpc.call(79, rpc.NFS, 3, rpc.REMOVE, opaque(root) + opaque("file")))
    process.wait_until(lambda: one.stats("nfs")["waiting"] == 3, "all three wait")
    one.set("slots", "1", "nfs")
    reply = client.reply()
    assert reply.xid == 77
    results = reply.results
    assert results.u32() == 0
    results.post_op_attr()
    assert (results.u32(), results.u32()) == (100000, 1)
    assert results.opaque() == old
    assert client.reply().xid == 78 and client.reply().xid == 79
    client.close()


def test_memory_is_bounded_and_given_back(origin):
    one = origin("--memory", "1MiB", "--file", "data=8MiB")
    client, root = nfs_client(one)
    client.write(client.create(root, "half"), 0, b"h" * 600000)
    handle = client.create(root, "more")
    assert status_of(client, rpc.WRITE, rpc.write_arguments(handle, 0, b"m" * 600000)) == NFS3ERR_NOSPC
    assert status_of(client, rpc.REMOVE, opaque(root) + opaque("half")) == 0
    client.write(handle, 0, b"m" * 600000)
    assert client.read(handle, 599999, 10) == b"m"
    files = json.loads(one.request("GET", "/_origin/stats")[2])["files"]
    assert 600000 <= files["bytes"] <= files["bytes_most"] == 1 << 20
    client.close()


def test_a_file_set_of_our_own_is_made_and_verified(origin):
    one = origin()
    path = os.path.join(process.scratch(), "summary.json")
    process.run([process.program("spillload"), "--json", path, "--duration", "1s", "--drain", "20s", "--flow",
                 f"name=set,proto=nfs,target={one.address['nfs']},files=200,depth=2,width=4,size=20KiB,verify=yes,"
                 "rate=400/s,mix=lookup:1 getattr:1 read:3 write:2 create:1 remove:1 readdir:1 access:1 commit:1"
                 " fsstat:1"])
    with open(path) as file:
        flow = json.load(file)["flows"][0]
    assert flow["outcomes"]["ok"] == flow["offered"] > 0, flow
    assert one.stats("nfs")["errors"] == 0


def test_libnfs_lists_reads_and_writes(origin):
    one = origin("--file", "small=5", "--file", "large=3000001")
    listed = process.run([process.tool("nfs-ls"), one.url()]).stdout
    assert {line.split()[-1]: int(line.split()[-2]) for line in listed.splitlines()} == {"small": 5, "large": 3000001}
    content = process.run([process.tool("nfs-cat"), one.url("/large")]).stdout
    assert len(content) == 3000001
    assert process.run([process.tool("nfs-cat"), one.url("/small")]).stdout == content[:5]
    # Past the pattern's length it starts over.
    assert content[262144:262144 + 100000] == content[:100000]
    path = os.path.join(process.scratch(), "mine")
    with open(path, "wb") as file:
        file.write(os.urandom(1500001))
    process.run([process.tool("nfs-cp"), path, one.url("/copy")])
    back = path + ".back"
    process.run([process.tool("nfs-cp"), one.url("/copy"), back])
    with open(path, "rb") as first, open(back, "rb") as second:
        assert first.read() == second.read()


def test_an_export_that_is_none_is_refused(origin):
    url = origin().url().replace("/export", "/elsewhere")
    done = process.run([process.tool("nfs-ls"), url], check=False)
    assert done.returncode != 0


def test_a_body_of_any_size_comes_whole(origin):
    one = origin()
    size = 300_000_000
    done = process.run([process.tool("curl"), "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}",
                        f"http://{one.address['http']}/?bytes={size}"])
    assert done.stdout == f"200 {size}"
    assert process.resident_bytes(one.process.pid) < 250_000_000


def test_a_linux_kernel_mounts_reads_and_writes(net):
    server = net.start("spillorigin", [process.program("spillorigin"), "--nfs", f"{nfs.SERVER_ADDRESS}:2051",
                                       "--file", "data=1MiB"])
    server.wait_log("ready\n")
    status, output = nfs.kernel_job(net, f"""
set -e
mkdir -p /mnt/o
mount -t nfs -o vers=3,tcp,nolock,port=2051,mountport=2051,mountproto=tcp {nfs.SERVER_ADDRESS}:/export /mnt/o
ls -l /mnt/o
df /mnt/o
cp /mnt/o/data /mnt/o/copy
head -c 300000 /mnt/o/data > /mnt/o/part
head -c 1000 /mnt/o/data > /mnt/o/part
rm /mnt/o/data
mkdir -p /mnt/o/tree/a/b
for i in $(seq 200); do echo $i > /mnt/o/tree/a/b/f$i; done
rm /mnt/o/tree/a/b/f7
sync
echo 3 > /proc/sys/vm/drop_caches
echo COPY $(sha256sum < /mnt/o/copy)
echo COUNT $(ls /mnt/o/tree/a/b | wc -l) $(cat /mnt/o/tree/a/b/f200)
rmdir /mnt/o/tree 2>/dev/null || echo FULL
rm -r /mnt/o/tree
echo LEFT $(ls /mnt/o)
echo SIZE $(stat -c %s /mnt/o/part)
umount /mnt/o
""")
    assert status == 0, output
    assert "COUNT 199 200\n" in output and "FULL\n" in output
    assert "LEFT copy part\n" in output
    assert "SIZE 1000\n" in output
    # The pattern of 256 KiB, four times.
    data = net.run([process.tool("nfs-cat"), f"nfs://{nfs.SERVER_ADDRESS}/export/copy?nfsport=2051&mountport=2051"]).stdout
    assert len(data) == 1 << 20 and data == data[:1 << 18] * 4
    assert f"COPY {hashlib.sha256(data.encode()).hexdigest()}" in output
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0, server.log()
