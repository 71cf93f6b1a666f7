# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 peers for tests: a raw client, a scripted origin that records every byte, and nginx."""
import os
import re
import socket
import threading

from . import process

CRLF2 = b"\r\n\r\n"


class Message:
    """A request or reply as it came over the wire."""

    def __init__(self, start, fields, head):
        self.start = start  # start line, bytes
        self.fields = fields  # [(name, value)] in order, bytes
        self.head = head  # every byte up to and with the empty line
        self.body = b""
        self.body_bytes = 0  # length when the body was not kept
        self.trailers = []
        self.chunked = False

    def all(self, name):
        """Values of every field of that name, in order."""
        name = name.lower().encode()
        return [v for n, v in self.fields if n.lower() == name]

    def get(self, name):
        """The value of the only field of that name; None when there is none."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} is there {len(values)} times: {self.head!r}"
        return values[0] if values else None

    # of a reply
    @property
    def status(self):
        return int(self.start.split(b" ")[1])

    # of a request
    @property
    def method(self):
        return self.start.split(b" ")[0]

    @property
    def target(self):
        return self.start.split(b" ")[1]

    def __repr__(self):
        return f"<{self.start!r} {self.fields!r} body {len(self.body) or self.body_bytes}>"


def parse_head(head):
    lines = head[:-4].split(b"\r\n")
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        assert colon, f"not a field: {line!r}"
        fields.append((name, value.strip(b" \t")))
    return Message(lines[0], fields, head)


class Ended(Exception):
    """The peer closed where a message (or the rest of one) was expected."""


class Stream:
    """Buffered reading of messages from a socket."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def more(self):
        try:
            data = self.sock.recv(262144)
        except ConnectionError as error:
            raise Ended(f"{error}; had {self.buffer[:200]!r}") from None
        if not data:
            raise Ended(f"closed; had {self.buffer[:200]!r}")
        self.buffer += data

    def until(self, mark):
        start = 0
        while (at := self.buffer.find(mark, start)) < 0:
            start = max(0, len(self.buffer) - len(mark))
            self.more()
        end = at + len(mark)
        taken, self.buffer = self.buffer[:end], self.buffer[end:]
        return taken

    def exactly(self, count, keep=True):
        """count bytes; with keep=False only counted (bodies too large to hold)."""
        if keep:
            taken = bytearray(count)
            at = min(count, len(self.buffer))
            taken[:at], self.buffer = self.buffer[:at], self.buffer[at:]
            view = memoryview(taken)
            while at < count:
                try:
                    got = self.sock.recv_into(view[at:])
                except ConnectionError as error:
                    raise Ended(str(error)) from None
                if not got:
                    raise Ended(f"closed with {count - at} of {count} bytes missing")
                at += got
            return bytes(taken)
        left = count - min(len(self.buffer), count)
        self.buffer = self.buffer[count:]
        scrap = bytearray(1 << 20)
        while left:
            try:
                got = self.sock.recv_into(scrap, min(left, len(scrap)))
            except ConnectionError as error:
                raise Ended(str(error)) from None
            if not got:
                raise Ended(f"closed with {left} of {count} body bytes missing")
            left -= got
        return b""

    def rest(self, keep=True):
        total = len(self.buffer)
        parts = [self.buffer]
        self.buffer = b""
        while True:
            try:
                data = self.sock.recv(1 << 18)
            except ConnectionError as error:
                raise Ended(str(error)) from None
            if not data:
                return b"".join(parts), total
            total += len(data)
            if keep:
                parts.append(data)

    def chunks(self, message, keep=True):
        parts = []
        message.chunked = True
        while True:
            line = self.until(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if size == 0:
                break
            parts.append(self.exactly(size, keep))
            message.body_bytes += size
            assert self.exactly(2) == b"\r\n", "chunk without its end"
        while (line := self.until(b"\r\n")) != b"\r\n":
            name, _, value = line[:-2].partition(b":")
            message.trailers.append((name, value.strip()))
        message.body = b"".join(parts)

    def request(self, keep=True, on_head=None):
        message = parse_head(self.until(CRLF2))
        if on_head:
            on_head(message)
        self.request_body(message, keep)
        return message

    def request_body(self, message, keep=True):
        if message.all("transfer-encoding"):
            self.chunks(message, keep)
        elif message.all("content-length"):
            message.body_bytes = int(message.get("content-length"))
            message.body = self.exactly(message.body_bytes, keep)

    def reply(self, method="GET", keep=True):
        message = parse_head(self.until(CRLF2))
        if method == "HEAD" or message.status in (204, 304) or message.status < 200:
            return message
        if message.all("transfer-encoding"):
            assert message.get("transfer-encoding").lower() == b"chunked"
            assert not message.all("content-length"), "both framings"
            self.chunks(message, keep)
        elif message.all("content-length"):
            message.body_bytes = int(message.get("content-length"))
            message.body = self.exactly(message.body_bytes, keep)
        else:
            message.body, message.body_bytes = self.rest(keep)
        return message


class Client:
    """A client that says exactly what the test says."""

    def __init__(self, port, address="127.0.0.1", source=None, receive_buffer=None):
        self.sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.sock.settimeout(process.PATIENCE_S)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.sock.bind((source, 0))
        self.sock.connect((address, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def reply(self, method="GET", keep=True):
        return self.stream.reply(method, keep)

    def final(self, method="GET"):
        """The next reply that is not 1xx."""
        while (reply := self.reply(method)).status < 200:
            pass
        return reply

    def ask(self, method="GET", target="/", fields=(), body=None, host="test.example"):
        """One request with Content-Length when there is a body; its reply."""
        self.send(request(method, target, fields, body, host))
        return self.final(method)

    def closed(self):
        """True when the peer has closed: waits for the FIN or RST; no byte may come before it."""
        assert not self.stream.buffer, f"bytes before the end: {self.stream.buffer[:200]!r}"
        try:
            data = self.sock.recv(1)
        except ConnectionError:
            return True
        except socket.timeout:
            return False
        assert not data, f"a byte before the end: {data!r}"
        return True

    def finish_sending(self):
        """FIN, with our receiving side still open."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()


def request(method="GET", target="/", fields=(), body=None, host="test.example"):
    lines = [f"{method} {target} HTTP/1.1"]
    if host:
        lines.append(f"Host: {host}")
    lines += [f"{n}: {v}" for n, v in fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def answer(body=b"ok\n", status="200 OK", fields=()):
    """A reply with Content-Length as bytes."""
    lines = (
        [f"HTTP/1.1 {status}"] + [f"{n}: {v}" for n, v in fields] + [f"Content-Length: {len(body)}"]
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def stop_listening(listener):
    """Closing alone would not: the thread that waits in accept() keeps the socket alive."""
    try:
        listener.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    listener.close()


class Exchange:
    """What a handler of Origin gets: the request, and the connection to write the reply to."""

    def __init__(self, origin, sock, stream, number, position):
        self.origin, self.sock, self.stream = origin, sock, stream
        self.connection = number  # which connection, from 1
        self.position = position  # which request on it, from 1
        self.request = None

    def send(self, data):
        self.sock.sendall(data)


class Origin:
    """A scripted origin. handler(exchange) returns bytes to send, or None after it has sent by
    itself,
    or Origin.CLOSE to close the connection (bytes + CLOSE: send, then close).

    With early=True the handler runs when the head is there, the body unread (exchange.stream).
    """

    class _Close:
        def __init__(self, before=b""):
            self.before = before

        def __radd__(self, data):
            return Origin._Close(data)

    CLOSE = _Close()

    def __init__(
        self,
        handler=None,
        early=False,
        keep_bodies=True,
        port=0,
        receive_buffer=None,
        bind="127.0.0.1",
    ):
        self.handler = handler or (lambda exchange: answer())
        self.early, self.keep_bodies = early, keep_bodies
        self.requests = []  # Message, in order of arrival
        self.accepted = 0
        self.open = 0
        self.most_open = 0
        self.errors = []  # what the handler or the parser raised
        self.changed = threading.Condition()
        family = (
            socket.AF_UNIX if "/" in bind else socket.AF_INET6 if ":" in bind else socket.AF_INET
        )
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind(bind if family == socket.AF_UNIX else (bind, port))
        self.listener.listen(1024)
        if family == socket.AF_UNIX:
            self.port, self.address = None, f"unix:{bind}"
        else:
            self.port = self.listener.getsockname()[1]
            self.address = (
                f"[{bind}]:{self.port}" if family == socket.AF_INET6 else f"{bind}:{self.port}"
            )
        self.sockets = set()
        self.stopping = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.accepted += 1
                number = self.accepted
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                self.sockets.add(sock)
                self.changed.notify_all()
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = Stream(sock)
        position = 0
        try:
            while True:
                position += 1
                exchange = Exchange(self, sock, stream, number, position)
                if self.early:
                    exchange.request = parse_head(stream.until(CRLF2))
                else:
                    exchange.request = stream.request(self.keep_bodies)
                exchange.request.connection = number
                with self.changed:
                    self.requests.append(exchange.request)
                    self.changed.notify_all()
                reply = self.handler(exchange)
                if isinstance(reply, Origin._Close):
                    sock.sendall(reply.before)
                    break
                if reply:
                    sock.sendall(reply)
        except (Ended, OSError):
            pass
        except Exception as error:  # noqa: BLE001 - shown by the test that looks at errors
            self.errors.append(error)
        finally:
            with self.changed:
                self.open -= 1
                self.sockets.discard(sock)
                self.changed.notify_all()
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def until(self, condition, what):
        """Waits until condition() holds; woken by every event here."""
        with self.changed:
            assert self.changed.wait_for(condition, process.PATIENCE_S), f"never came: {what}"

    def wait_requests(self, count):
        self.until(lambda: len(self.requests) >= count, f"{count} requests at the origin")

    def drop_connections(self):
        """Closes every connection now open, as a crashing server does."""
        with self.changed:
            sockets = list(self.sockets)
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        stop_listening(self.listener)
        self.drop_connections()


class Nginx:
    """nginx as an origin. `files` is its document root; `access()` lists (connection, request line,
    status)."""

    CONFIGURATION = """
daemon off; master_process off; pid {home}/pid; error_log stderr warn; {user}
events {{ worker_connections 4096; }}
http {{
  log_format plain '$connection\t$request\t$status\t$request_length\t$http_host';
  access_log {home}/access.log plain;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  client_max_body_size 0; keepalive_requests 1000000; sendfile on; default_type text/plain;
  server {{
    listen 127.0.0.1:{port}; root {home}/files; server_name _;
    location = /empty {{ return 204; }}
    location = /moved {{ return 302 http://elsewhere.example/; }}
    location = /post {{ error_page 405 =200 @post; return 405; }}
    location @post {{ return 200 "posted\\n"; }}
    location = /who {{ return 200 "$host $remote_addr $http_x_forwarded_for\\n"; }}
  }}
}}
"""

    def __init__(self):
        self.home = process.scratch("spillway-nginx-")
        self.files = os.path.join(self.home, "files")
        os.mkdir(self.files)
        self.port = process.free_port()
        self.address = f"127.0.0.1:{self.port}"
        path = os.path.join(self.home, "nginx.conf")
        with open(path, "w") as configuration:
            configuration.write(
                self.CONFIGURATION.format(
                    home=self.home, port=self.port, user="user root;" if os.geteuid() == 0 else ""
                )
            )
        self.put("index.html", b"<p>welcome\n")
        self.server = process.Process(
            "nginx", [process.tool("nginx"), "-c", path, "-e", "stderr", "-p", self.home]
        )
        self.server.wait_listening(self.port)

    def put(self, name, content):
        with open(os.path.join(self.files, name), "wb") as file:
            file.write(content)

    def put_sparse(self, name, size):
        with open(os.path.join(self.files, name), "wb") as file:
            file.truncate(size)

    def access(self):
        with open(os.path.join(self.home, "access.log")) as lines:
            return [re.split("\t", line.rstrip("\n")) for line in lines]

    def close(self):
        self.server.kill()
