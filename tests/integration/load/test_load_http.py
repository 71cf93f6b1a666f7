# SPDX-License-Identifier: Apache-2.0
"""spillload over HTTP/1.1, TLS and HTTP/2: what it asks for, what it makes of the replies, and what
it says when that does not work. The peers are nginx, nghttpd, spillorigin and scripts."""
import collections
import email.utils
import glob
import json
import os
import re
import socket
import struct
import threading
import time

import pytest

from lab import http, process

CONFIGURATION = """
daemon off; master_process off; pid {home}/pid; error_log stderr warn; {user}
events {{ worker_connections 4096; }}
http {{
  log_format plain '$server_port\t$connection\t$request_method\t$uri\t$status\t$http_x_tenant'
                   '\t$http_x_number\t$http_x_random\t$ssl_session_reused\t$server_protocol';
  access_log {home}/access.log plain;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  client_max_body_size 0; keepalive_requests {keep}; default_type text/plain;
  ssl_certificate {home}/cert.pem; ssl_certificate_key {home}/key.pem;
  ssl_session_cache shared:s:1m;
  server {{
    listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl;
    listen 127.0.0.1:{h2} ssl http2; listen 127.0.0.1:{h2c} http2;
    root {home}/files; dav_methods PUT DELETE; create_full_put_path on;
    location = /empty {{ return 204; }}
    location = /busy {{ add_header Retry-After 1 always; return 503; }}
  }}
}}
"""


class Nginx:
    """nginx with every kind of port: .plain, .tls, .h2, .h2c are addresses."""

    def __init__(self, keep=1000000):
        self.home = process.scratch("spillway-nginx-")
        self.files = os.path.join(self.home, "files")
        os.mkdir(self.files)
        self.put("128", b"x" * 128)
        self.put("large", b"y" * 3_000_000)
        self.certificate = os.path.join(self.home, "cert.pem")
        process.run([process.tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", os.path.join(self.home, "key.pem"),
                     "-out", self.certificate, "-days", "2", "-subj", "/CN=load.example",
                     "-addext", "subjectAltName=IP:127.0.0.1,DNS:load.example"])
        ports = {name: process.free_port() for name in ("plain", "tls", "h2", "h2c")}
        path = os.path.join(self.home, "nginx.conf")
        with open(path, "w") as configuration:
            configuration.write(CONFIGURATION.format(
                home=self.home, keep=keep, user="user root;" if os.geteuid() == 0 else "", **ports))
        for name, port in ports.items():
            setattr(self, name, f"127.0.0.1:{port}")
        self.server = process.Process("nginx", [
            process.tool("nginx"), "-c", path, "-e", "stderr", "-p", self.home])
        self.server.wait_listening(ports["h2c"])

    def target(self, protocol, streams=0):
        """The keys of a flow that reach it by this protocol, its certificate verified; so many
        requests at once on a connection where it can."""
        address = {"http": self.plain, "https": self.tls, "h2": self.h2, "h2c": self.h2c}[protocol]
        trust = f",tls-ca={self.certificate}" if protocol in ("https", "h2") else ""
        at_once = f",streams={streams}" if streams and protocol.startswith("h2") else ""
        return f"proto={protocol},target={address}{trust}{at_once}"

    def put(self, name, content):
        with open(os.path.join(self.files, name), "wb") as file:
            file.write(content)

    def access(self):
        """Requests so far, in the order of their ends."""
        Line = collections.namedtuple(
            "Line", "port connection method path status tenant number random resumed protocol")
        with open(os.path.join(self.home, "access.log")) as lines:
            return [Line(*line.rstrip("\n").split("\t")) for line in lines]

    def close(self):
        self.server.kill()


def spillload(*flows, duration="300ms", options=(), check=True):
    """Runs these flows; returns (completed process, {flow name: summary})."""
    path = os.path.join(process.scratch(), "summary.json")
    arguments = [word for flow in flows for word in ("--flow", flow)]
    done = process.run([process.program("spillload"), "--json", path, "--duration", duration,
                        "--drain", "20s", *arguments, *options], check=check)
    assert "Sanitizer" not in done.stderr, done.stderr
    with open(path) as file:
        return done, {flow["name"]: flow for flow in json.load(file)["flows"]}


def all_well(flow):
    """Requests of a flow that were all answered well."""
    assert flow["outcomes"]["ok"] == flow["offered"] > 0, flow
    assert flow["unfinished"] == 0
    return flow["outcomes"]["ok"]


PROTOCOLS = ("http", "https", "h2c", "h2")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_counts_as_the_server_does(closing, protocol):
    nginx = closing(Nginx())
    _, flows = spillload(f"name=a,{nginx.target(protocol, 5)},path=/128,concurrency=12")
    assert len(nginx.access()) == all_well(flows["a"])
    line = nginx.access()[0]
    assert line.protocol == ("HTTP/2.0" if protocol.startswith("h2") else "HTTP/1.1")
    # Five at once on each of three connections, or one on each of twelve.
    assert len({line.connection for line in nginx.access()}) <= (3 if protocol.startswith("h2") else 12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_large_replies_and_uploads_come_whole(closing, protocol):
    nginx = closing(Nginx())
    _, flows = spillload(
        f"name=down,{nginx.target(protocol, 4)},path=/large,concurrency=4",
        f"name=up,{nginx.target(protocol, 3)},method=PUT,path=/up-{{number}},body=1234567,concurrency=3")
    assert flows["down"]["bytes_in_per_s"] == pytest.approx(3_000_000 * all_well(flows["down"]) / 0.3, rel=1e-6)
    count = all_well(flows["up"])
    assert flows["up"]["bytes_out_per_s"] == pytest.approx(1234567 * count / 0.3, rel=1e-6)
    uploads = glob.glob(os.path.join(nginx.files, "up-*"))
    assert len(uploads) == count
    assert {os.path.getsize(path) for path in uploads} == {1234567}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_uploaded_files_are_those_of_the_set(closing, protocol):
    nginx = closing(Nginx())
    keys = "files=40,depth=2,width=3,size=exponential:100KiB"
    _, flows = spillload(f"name=up,{nginx.target(protocol)},method=PUT,path=/{{file}},{keys},concurrency=4")
    all_well(flows["up"])
    paths = {line.path for line in nginx.access()}
    assert all(re.fullmatch(r"/set/d[0-2]/d[0-2]/f000000[0-3][0-9]", path) for path in paths), paths
    contents = {}
    for path in paths:
        with open(nginx.files + path, "rb") as file:
            contents[path] = file.read()
    assert len({len(content) for content in contents.values()}) > len(paths) / 2, "sizes are drawn"
    # Another flow with the same description sends the same.
    other = closing(Nginx())
    _, flows = spillload(f"name=up,{other.target('http')},method=PUT,path=/{{file}},{keys},concurrency=4")
    all_well(flows["up"])
    compared = 0
    for path in {line.path for line in other.access()} & paths:
        with open(other.files + path, "rb") as file:
            assert file.read() == contents[path], path
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("protocol", ("http", "h2c"))
def test_a_mix_is_drawn_by_weight_and_metered_by_kind(closing, protocol):
    nginx = closing(Nginx())
    _, flows = spillload(
        f"name=mix,{nginx.target(protocol)},rate=3000/s,seed=5,request=6 GET /128,request=3 HEAD /128,"
        "request=1 GET /missing", duration="600ms", check=False)
    outcomes = flows["mix"]["outcomes"]
    seen = collections.Counter((line.method, line.path, line.status) for line in nginx.access())
    assert seen[("GET", "/missing", "404")] == outcomes["http_4xx"]
    assert sum(seen.values()) == flows["mix"]["offered"] == outcomes["ok"] + outcomes["http_4xx"]
    total = sum(seen.values())
    for kind, share in ((("GET", "/128", "200"), 0.6), (("HEAD", "/128", "200"), 0.3)):
        # Five standard deviations.
        assert abs(seen[kind] - share * total) < 5 * (share * (1 - share) * total) ** 0.5, seen


@pytest.mark.parametrize("protocol", ("http", "h2c"))
def test_headers_are_filled_in_for_each_request_and_by_the_seed_alone(closing, protocol):
    nginx = closing(Nginx())
    flow = (f"name=t,{nginx.target(protocol)},path=/128?r={{random}},concurrency=4,seed=11,tenants=3,"
            "header=X-Tenant:t{tenant},header=X-Number:{number},header=X-Random:{random}")
    seen = []
    for _ in range(2):
        before = len(nginx.access())
        _, flows = spillload(flow)
        lines = nginx.access()[before:]
        assert len(lines) == all_well(flows["t"])
        assert sorted(int(line.number) for line in lines) == list(range(len(lines)))
        seen.append({line.number: (line.tenant, line.random) for line in lines})
    assert {tenant for tenant, _ in seen[0].values()} == {"t0", "t1", "t2"}
    assert all(re.fullmatch("[0-9a-f]{16}", random) for _, random in seen[0].values())
    both = seen[0].keys() & seen[1].keys()
    assert len(both) > 20 and all(seen[0][number] == seen[1][number] for number in both)


def test_a_connection_for_each_request_and_tls_sessions_taken_up(closing):
    nginx = closing(Nginx())
    _, flows = spillload(f"name=plain,{nginx.target('http')},path=/128,concurrency=3,keep-alive=no",
                         f"name=tls,{nginx.target('https')},path=/128,concurrency=3,keep-alive=no")
    lines = nginx.access()
    assert len({line.connection for line in lines}) == len(lines)
    assert len(lines) == all_well(flows["plain"]) + all_well(flows["tls"])
    resumed = [line.resumed for line in lines if nginx.tls.endswith(":" + line.port)]
    assert resumed.count("r") >= len(resumed) - 3, "all but the first of three clients"


def test_a_server_that_ends_connections_after_some_requests_harms_nobody(closing):
    nginx = closing(Nginx(keep=7))
    _, flows = spillload(*(f"name={protocol},{nginx.target(protocol, 3)},path=/128,concurrency=6"
                           for protocol in PROTOCOLS))
    assert len(nginx.access()) == sum(all_well(flow) for flow in flows.values())


@pytest.mark.parametrize("protocol", ("http", "h2c"))
def test_a_refused_request_comes_again_when_the_server_said(closing, protocol):
    nginx = closing(Nginx())
    common = f"{nginx.target(protocol)},path=/busy,concurrency=1,retries=1,retry=1ms,pause=1h"
    _, flows = spillload(f"name=soon,{common}", f"name=later,{common},retry-after=yes", duration="2s", check=False)
    assert len(nginx.access()) == 4
    for flow in flows.values():
        assert flow["outcomes"]["refused"] == flow["offered"] == 1
    assert flows["later"]["refusal_latency"]["max_ms"] >= 1000 > flows["soon"]["refusal_latency"]["max_ms"]


def test_a_date_in_retry_after_is_waited_for(closing):
    def handler(exchange):
        if exchange.position == 1:
            return http.answer(b"", "503 Busy", [("Retry-After", email.utils.formatdate(time.time() + 2, usegmt=True))])
        return http.answer()
    origin = closing(http.Origin(handler))
    _, flows = spillload(f"name=a,target={origin.address},concurrency=1,retries=1,retry=1ms,retry-after=yes,think=1h",
                         duration="3s")
    assert flows["a"]["outcomes"]["ok"] == 1
    # Dates have whole seconds: at least one of the two.
    assert flows["a"]["latency"]["max_ms"] >= 1000


@pytest.mark.parametrize("protocol, keys, sentence", [
    ("https", "", "not accepted for \"127.0.0.1\": self-signed certificate"),
    ("https", "tls-ca={ca},server-name=other.example", "hostname mismatch"),
    ("h2", "", "self-signed certificate"),
])
def test_a_certificate_that_is_not_accepted_is_said(closing, protocol, keys, sentence):
    nginx = closing(Nginx())
    address = nginx.tls if protocol == "https" else nginx.h2
    keys = keys.format(ca=nginx.certificate)
    done, flows = spillload(f"name=a,proto={protocol},target={address},{keys or 'path=/128'},concurrency=2", check=False)
    assert done.returncode == 1
    assert flows["a"]["outcomes"]["connect"] == flows["a"]["offered"] > 0
    assert sentence in done.stderr and "/CN=load.example" in done.stderr
    assert done.stderr.count("no connection") == 1
    assert not nginx.access()
    _, flows = spillload(f"name=a,proto={protocol},target={address},tls-verify=no,path=/128,concurrency=2")
    all_well(flows["a"])


@pytest.mark.parametrize("protocol, port, sentence", [
    ("https", "plain", "does the server speak TLS on this port?"),
    ("h2", "tls", "does not offer h2 over TLS"),
    ("h2c", "plain", "does not answer in HTTP/2"),
])
def test_a_port_of_another_kind_is_said(closing, protocol, port, sentence):
    nginx = closing(Nginx())
    trust = "" if protocol == "h2c" else f",tls-ca={nginx.certificate}"
    done, flows = spillload(f"name=a,proto={protocol},target={getattr(nginx, port)}{trust},path=/128,concurrency=2", check=False)
    assert done.returncode == 1 and flows["a"]["outcomes"]["ok"] == 0
    assert sentence in done.stderr, done.stderr


def test_a_file_of_trust_that_is_none_is_said(closing):
    nginx = closing(Nginx())
    path = os.path.join(nginx.files, "128")
    done = process.run([process.program("spillload"), "--duration", "100ms", "--flow",
                        f"name=a,proto=https,target={nginx.tls},tls-ca={path},concurrency=1"], check=False)
    assert done.returncode != 0
    assert path in done.stderr and "PEM" in done.stderr


# ---------------------------------------------------------------- HTTP/1.1 replies that go wrong

@pytest.mark.parametrize("reply, outcome", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf" + http.Origin.CLOSE, "connection_lost"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + http.Origin.CLOSE, "connection_lost"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed_reply"),
    (b"SSH-2.0-OpenSSH\r\n", "malformed_reply"),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "malformed_reply"),
    (b"" + http.Origin.CLOSE, "connection_lost"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end" + http.Origin.CLOSE, "ok"),
    (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "http_5xx"),
    (b"HTTP/1.1 429 Wait\r\nContent-Length: 0\r\n\r\n", "refused"),
])
def test_what_a_reply_is_counted_as(closing, reply, outcome):
    origin = closing(http.Origin(lambda exchange: reply))
    _, flows = spillload(f"name=a,target={origin.address},rate=50/s,arrival=constant", check=False)
    outcomes = flows["a"]["outcomes"]
    assert outcomes.pop(outcome) == flows["a"]["offered"] > 0
    assert not any(outcomes.values()), outcomes


def test_what_follows_a_reply_is_not_taken_for_the_reply_to_a_request_sent_after_it(closing):
    asked = []

    def handler(exchange):
        asked.append(exchange.position)
        return http.answer() * 3
    origin = closing(http.Origin(handler))
    _, flows = spillload(f"name=a,target={origin.address},concurrency=2")
    assert all_well(flows["a"]) == len(asked)
    assert set(asked) == {1}


@pytest.mark.parametrize("method, outcome", [("GET", "ok"), ("POST", "connection_lost")])
def test_a_kept_connection_closed_under_a_request_costs_only_what_may_not_be_repeated(closing, method, outcome):
    """The second request on each connection is answered by closing it."""
    def handler(exchange):
        return http.answer() if exchange.position == 1 else b"" + http.Origin.CLOSE
    origin = closing(http.Origin(handler))
    _, flows = spillload(f"name=a,target={origin.address},method={method},rate=40/s,arrival=constant,connections=1",
                         check=False)
    outcomes = flows["a"]["outcomes"]
    assert outcomes[outcome] > 0
    assert outcomes["ok"] + outcomes["connection_lost"] == flows["a"]["offered"]
    assert method == "POST" or outcomes["connection_lost"] == 0


def test_an_early_refusal_of_an_upload_ends_the_connection(closing):
    """The reply comes while 100 MB are on their way: the rest is not sent, and not taken for a request."""
    origin = closing(http.Origin(lambda exchange: http.answer(b"", "413 No") + http.Origin.CLOSE, early=True))
    _, flows = spillload(f"name=a,target={origin.address},method=PUT,body=100MiB,concurrency=1,pause=20ms", check=False)
    outcomes = flows["a"]["outcomes"]
    assert outcomes["http_4xx"] + outcomes["connection_lost"] == flows["a"]["offered"] > 0


# ---------------------------------------------------------------- HTTP/2 servers of every kind

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
REFUSED_STREAM, CANCEL = 7, 8
STATUS_200, STATUS_404 = b"\x88", b"\x8d"  # HPACK, static table


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def reply(stream, body=b""):
    """A whole reply with status 200."""
    if not body:
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200)
    return frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(DATA, END_STREAM, stream, body)


def goaway(last, error=0):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, error))


class Http2Script:
    """An HTTP/2 server without a mind: on_request(script, stream, nth) says which bytes answer the
    n-th request (from 1) of a connection; None closes it. `settings` are sent at once."""

    def __init__(self, on_request, settings=b""):
        self.on_request = on_request
        self.settings = settings
        self.requests = 0
        self.connections = 0
        self.most_open = 0
        self.reset = []  # streams that the client gave up
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        stream = http.Stream(sock)
        count = 0
        try:
            assert stream.exactly(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            sock.sendall(frame(SETTINGS, 0, 0, self.settings))
            while True:
                head = stream.exactly(9)
                payload = stream.exactly(int.from_bytes(head[:3], "big"))
                kind, flags, number = struct.unpack(">BBI", head[3:])
                if kind == SETTINGS and not flags & ACK:
                    sock.sendall(frame(SETTINGS, ACK))
                elif kind == RST_STREAM:
                    self.reset.append(number)
                elif kind == HEADERS:
                    count += 1
                    with self.lock:
                        self.requests += 1
                    answer = self.on_request(self, number, count)
                    if answer is None:
                        return
                    sock.sendall(answer)
                assert kind != HEADERS or payload
        except (http.Ended, OSError):
            pass
        finally:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def close(self):
        http.stop_listening(self.listener)


def load_script(closing, on_request, keys="concurrency=4,streams=4,think=2ms", check=True, settings=b""):
    script = closing(Http2Script(on_request, settings))
    done, flows = spillload(f"name=a,proto=h2c,target={script.address},{keys}", check=check)
    return script, flows["a"], done


def test_refused_streams_are_sent_again_unseen(closing):
    """Every third request is refused; one client alone, so that the next is the same again."""
    def on_request(script, stream, nth):
        return frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)) if nth % 3 == 0 else reply(stream, b"ok")
    script, flow, _ = load_script(closing, on_request, "concurrency=1,streams=4,think=1ms")
    assert script.requests == all_well(flow) + script.requests // 3 > 10


def test_streams_refused_for_good_are_refusals(closing):
    script, flow, _ = load_script(
        closing, lambda script, stream, nth: frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)),
        "concurrency=2,streams=2,pause=20ms", check=False)
    assert flow["outcomes"]["refused"] == flow["offered"] > 0
    assert script.requests == 4 * flow["offered"]


def test_what_is_above_the_last_stream_of_a_goaway_is_sent_again(closing):
    """Of each connection's requests the fifth is the last that is served."""
    def on_request(script, stream, nth):
        if nth < 5:
            return reply(stream)
        return goaway(stream) + reply(stream) if nth == 5 else b""
    script, flow, _ = load_script(closing, on_request, "concurrency=8,streams=8,think=1ms")
    assert all_well(flow) > 10
    assert script.connections > 1


def test_a_connection_that_says_goodbye_serves_what_it_began(closing):
    """The reply to the third comes after GOAWAY; no further request may come on that connection."""
    late = []

    def on_request(script, stream, nth):
        if nth > 3:
            late.append(stream)
        return goaway(stream) + reply(stream, b"z" * 1000) if nth == 3 else reply(stream)
    script, flow, _ = load_script(closing, on_request, "concurrency=1,streams=1")
    assert all_well(flow) > 6
    assert not late


@pytest.mark.parametrize("answer, outcome", [
    (lambda stream: frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)), "connection_lost"),
    (lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(RST_STREAM, 0, stream, struct.pack(">I", 2)),
     "connection_lost"),
    (lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200) + b"", None),
    (lambda stream: frame(DATA, END_STREAM, stream, b"no head"), "malformed_reply"),
    (lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\xff\xff\xff\xff\xff"), "malformed_reply"),
    (lambda stream: b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed_reply"),
    (lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_404), "http_4xx"),
])
def test_what_an_http2_reply_is_counted_as(closing, answer, outcome):
    script, flow, _ = load_script(
        closing, lambda script, stream, nth: answer(stream),
        "rate=30/s,arrival=constant,timeout=100ms", check=False)
    assert flow["outcomes"].pop(outcome or "timeout") == flow["offered"] > 0, flow
    assert not any(flow["outcomes"].values()), flow
    if not outcome:
        # Each of them was given up in the server's eyes too; their number is not known to it otherwise.
        process.wait_until(lambda: len(script.reset) == flow["offered"], "a RST_STREAM for each timeout")


def test_a_connection_that_ends_without_goodbye_loses_only_what_may_not_be_repeated(closing):
    def on_request(script, stream, nth):
        return reply(stream) if nth < 4 else None
    _, flow, _ = load_script(closing, on_request, "concurrency=1,streams=1")
    assert all_well(flow) > 6
    _, flow, _ = load_script(closing, on_request, "concurrency=1,streams=1,method=POST,pause=5ms", check=False)
    outcomes = flow["outcomes"]
    assert outcomes["connection_lost"] > 0
    assert outcomes["connection_lost"] + outcomes["ok"] == flow["offered"]


class DyingHttp2Script(Http2Script):
    """Answers ten requests of its first connection, and takes no other one."""

    def __init__(self):
        super().__init__(lambda script, stream, nth: reply(stream, b"ok") if nth <= 10 else None)

    def serve(self, sock):
        if self.connections == 1:
            super().serve(sock)
        else:
            sock.close()


def test_a_server_that_spoke_http2_before_it_died_is_not_said_to_lack_it(closing):
    script = closing(DyingHttp2Script())
    done, flows = spillload(f"name=a,proto=h2c,target={script.address},concurrency=1,pause=10ms")
    assert flows["a"]["outcomes"]["ok"] == 10 < flows["a"]["offered"]
    assert "does not answer in HTTP/2" not in done.stderr


def test_the_servers_limit_of_streams_is_kept(closing):
    """It allows two at once; each request is answered only when the next has come or none may."""
    waiting = []
    most = []

    def on_request(script, stream, nth):
        waiting.append(stream)
        most.append(len(waiting))
        if len(waiting) < 2 and nth > 100:
            return b""
        if len(waiting) < 2:
            return b""
        done = b"".join(reply(one) for one in waiting)
        waiting.clear()
        return done
    settings = struct.pack(">HI", 3, 2)
    _, flow, _ = load_script(closing, on_request, "concurrency=16,streams=16,connections=1,timeout=500ms",
                             check=False, settings=settings)
    assert flow["outcomes"]["ok"] > 20
    assert max(most) <= 2


def test_an_http2_upload_waits_for_the_servers_window(closing):
    """nghttpd grants windows as it reads; 5 MB are 80 of them."""
    folder = process.scratch()
    with open(os.path.join(folder, "index.html"), "wb") as file:
        file.write(b"<p>here\n")
    port = process.free_port()
    server = process.Process("nghttpd", [process.tool("nghttpd"), "-d", folder, "--no-tls", "--echo-upload", str(port)])
    closing(type("Closing", (), {"close": lambda self: server.kill()})())
    server.wait_listening(port)
    _, flows = spillload(f"name=up,proto=h2c,target=127.0.0.1:{port},method=POST,body=5MiB,concurrency=3,streams=3",
                         f"name=get,proto=h2c,target=127.0.0.1:{port},concurrency=30,streams=10")
    count = all_well(flows["up"])
    assert flows["up"]["bytes_in_per_s"] == pytest.approx(flows["up"]["bytes_out_per_s"])
    assert flows["up"]["bytes_out_per_s"] == pytest.approx(5 * (1 << 20) * count / 0.3, rel=1e-6)
    all_well(flows["get"])
