# SPDX-License-Identifier: Apache-2.0
"""ONC RPC by hand (RFC 5531): records, calls, replies; NFSv3, MOUNT (RFC 1813) and COMPOUND (RFC
8881) as bytes.

The encodings are written here anew, not with the proxy's code, so that a mistake there shows.
"""
import itertools
import socket
import struct
import threading

from . import process
from .http import stop_listening

MOUNT, NFS, NFSACL = 100005, 100003, 100227
CALL, REPLY = 0, 1
AUTH_NONE, AUTH_SYS, RPCSEC_GSS, AUTH_TLS = 0, 1, 6, 7
# accept_stat
SUCCESS, PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, GARBAGE_ARGS, SYSTEM_ERR = range(6)
# NFSv3 procedures
(
    NULL,
    GETATTR,
    SETATTR,
    LOOKUP,
    ACCESS,
    READLINK,
    READ,
    WRITE,
    CREATE,
    MKDIR,
    SYMLINK,
    MKNOD,
    REMOVE,
    RMDIR,
    RENAME,
    LINK,
    READDIR,
    READDIRPLUS,
    FSSTAT,
    FSINFO,
    PATHCONF,
    COMMIT,
) = range(22)
NFS3ERR_JUKEBOX = NFS4ERR_DELAY = 10008
UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
LAST_FRAGMENT = 0x80000000


def u32(*values):
    return struct.pack(f">{len(values)}I", *values)


def u64(*values):
    return struct.pack(f">{len(values)}Q", *values)


def opaque(data):
    """Variable-length opaque data, padded."""
    data = data.encode() if isinstance(data, str) else data
    return u32(len(data)) + data + b"\0" * (-len(data) % 4)


class Reader:
    """A cursor over XDR data; running past the end is an error of the sender."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data), f"truncated: {self.data[:80]!r}"
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def opaque(self):
        size = self.u32()
        data = self.take(size)
        self.take(-size % 4)
        return data

    def ended(self):
        return self.at == len(self.data)

    def post_op_attr(self):
        return self.take(84) if self.u32() else None

    def wcc_data(self):
        if self.u32():
            self.take(24)
        self.post_op_attr()


def auth_sys(uid=0, gid=0, machine="test", groups=()):
    return u32(AUTH_SYS) + opaque(u32(0) + opaque(machine) + u32(uid, gid, len(groups), *groups))


NO_AUTH = u32(AUTH_NONE, 0)


def call(
    xid,
    program,
    version,
    procedure,
    arguments=b"",
    credential=None,
    verifier=NO_AUTH,
    rpc_version=2,
):
    return (
        u32(xid, CALL, rpc_version, program, version, procedure)
        + (credential or auth_sys())
        + verifier
        + arguments
    )


def refusal(xid, status, *more):
    """An accepted reply that says why it was not done, as PROG_UNAVAIL."""
    return u32(xid, REPLY, 0, 0, 0, status, *more)


def success(xid, results=b""):
    return u32(xid, REPLY, 0, 0, 0, SUCCESS) + results


def record(payload, fragment=None):
    """payload with its record mark(s); fragment: size of each fragment but the last."""
    if not fragment:
        return u32(LAST_FRAGMENT | len(payload)) + payload
    parts = [payload[i : i + fragment] for i in range(0, len(payload), fragment)] or [b""]
    marked = [u32(len(p)) + p for p in parts[:-1]]
    return b"".join(marked) + u32(LAST_FRAGMENT | len(parts[-1])) + parts[-1]


class Reply:
    def __init__(self, payload):
        reader = Reader(payload)
        self.payload = payload
        self.xid = reader.u32()
        assert reader.u32() == REPLY, "a call where a reply was expected"
        self.accepted = reader.u32() == 0
        self.status = self.reject = self.mismatch = None
        if self.accepted:
            reader.u32(), reader.opaque()  # verifier
            self.status = reader.u32()
            if self.status == PROG_MISMATCH:
                self.mismatch = (reader.u32(), reader.u32())
        else:
            self.reject = reader.u32()  # 0 RPC_MISMATCH, 1 AUTH_ERROR
            self.detail = reader.u32()
        self.reader = reader

    @property
    def results(self):
        """Reader of the results of a successful call."""
        assert (
            self.accepted and self.status == SUCCESS
        ), f"accepted {self.accepted}, status {self.status}"
        return self.reader


class Call:
    def __init__(self, payload, connection, fragments):
        reader = Reader(payload)
        self.payload, self.connection, self.fragments = payload, connection, fragments
        self.xid = reader.u32()
        self.type = reader.u32()
        if self.type == CALL:
            self.rpc_version, self.program, self.version, self.procedure = (
                reader.u32() for _ in range(4)
            )
            self.flavour = reader.u32()
            self.credential = reader.opaque()
            reader.u32(), reader.opaque()
            self.arguments = payload[reader.at :]

    def uid(self):
        reader = Reader(self.credential)
        reader.u32(), reader.opaque()
        return reader.u32()


class Ended(Exception):
    """The peer closed where a record was expected."""


class Records:
    """Reading and writing records on a socket."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(process.PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = sock.makefile("rb", 1 << 18)
        self.fragments = 0  # of the record read last

    def send(self, payload, fragment=None):
        self.sock.sendall(record(payload, fragment))

    def _exactly(self, count):
        try:
            data = self.input.read(count)
        except ConnectionError as error:
            raise Ended(str(error)) from None
        if len(data) < count:
            raise Ended(f"closed with {count - len(data)} bytes missing")
        return data

    def receive(self):
        parts, last = [], False
        self.fragments = 0
        while not last:
            mark = struct.unpack(">I", self._exactly(4))[0]
            last = bool(mark & LAST_FRAGMENT)
            parts.append(self._exactly(mark & ~LAST_FRAGMENT))
            self.fragments += 1
        return b"".join(parts)

    def closed(self):
        """True when the peer has closed; no byte may come before that."""
        try:
            data = self.input.read(1)
        except ConnectionError:
            return True
        except socket.timeout:
            return False
        assert not data, f"a byte before the end: {data!r}"
        return True

    def reset(self):
        """RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.sock.close()
        try:
            self.input.close()
        except OSError:
            pass


class Client(Records):
    """An RPC client on a connected socket (or a port of this machine)."""

    def __init__(self, where, uid=0, first_xid=1, source=None):
        if isinstance(where, int):
            where = socket.create_connection(
                ("127.0.0.1", where),
                process.PATIENCE_S,
                source_address=(source, 0) if source else None,
            )
        super().__init__(where)
        self.uid = uid
        self.xids = itertools.count(first_xid)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def reply(self):
        return Reply(self.receive())

    def ask(self, program, version, procedure, arguments=b"", fragment=None, **options):
        """One call and its reply; nothing else may be in flight."""
        xid = next(self.xids)
        options.setdefault("credential", auth_sys(self.uid))
        self.send(call(xid, program, version, procedure, arguments, **options), fragment)
        reply = self.reply()
        assert reply.xid == xid, f"reply to {reply.xid} where {xid} was asked"
        return reply

    def nfs3(self, procedure, arguments=b"", **options):
        return self.ask(NFS, 3, procedure, arguments, **options)

    # ------------------------------------------------ NFSv3 in words

    def mount(self, path):
        """MNT: the file handle of the export."""
        results = self.ask(MOUNT, 3, 1, opaque(path)).results
        status = results.u32()
        assert status == 0, f"MNT {path}: {status}"
        return results.opaque()

    def lookup(self, folder, name):
        results = self.nfs3(LOOKUP, opaque(folder) + opaque(name)).results
        status = results.u32()
        assert status == 0, f"LOOKUP {name}: {status}"
        return results.opaque()

    def create(self, folder, name):
        """CREATE, unchecked, mode 0666: the new file's handle."""
        attributes = u32(1, 0o666, 0, 0, 0, 0, 0)
        results = self.nfs3(CREATE, opaque(folder) + opaque(name) + u32(0) + attributes).results
        status = results.u32()
        assert status == 0, f"CREATE {name}: {status}"
        assert results.u32() == 1
        return results.opaque()

    def write(self, handle, offset, data, stable=FILE_SYNC, fragment=None):
        results = self.nfs3(
            WRITE, write_arguments(handle, offset, data, stable), fragment=fragment
        ).results
        status = results.u32()
        assert status == 0, f"WRITE: {status}"
        results.wcc_data()
        return results.u32()

    def read(self, handle, offset, count, fragment=None):
        results = self.nfs3(READ, read_arguments(handle, offset, count), fragment=fragment).results
        status = results.u32()
        assert status == 0, f"READ: {status}"
        results.post_op_attr()
        size = results.u32()
        results.u32()
        data = results.opaque()
        assert len(data) == size and results.ended()
        return data

    def getattr_size(self, handle):
        results = self.nfs3(GETATTR, opaque(handle)).results
        assert results.u32() == 0
        return Reader(results.take(84)[20:28]).u64()

    def compound(self, minor, *operations, tag=""):
        """COMPOUND; a Reader positioned at status, tag, results."""
        return self.ask(NFS, 4, 1, compound_arguments(minor, *operations, tag=tag)).results


def read_arguments(handle, offset, count):
    return opaque(handle) + u64(offset) + u32(count)


def write_arguments(handle, offset, data, stable=FILE_SYNC):
    return opaque(handle) + u64(offset) + u32(len(data), stable) + opaque(data)


def compound_arguments(minor, *operations, tag=""):
    return opaque(tag) + u32(minor, len(operations)) + b"".join(operations)


PUTROOTFH, GETFH, ILLEGAL = u32(24), u32(10), u32(10044)


def attributes(size=4096, kind=1, mode=0o644, uid=0):
    """An NFSv3 fattr3 of a plain file."""
    return (
        u32(kind, mode, 1, uid, 0)
        + u64(size, size)
        + u32(0, 0)
        + u64(7, 42)
        + u32(1, 0, 1, 0, 1, 0)
    )


def canned(request, size=4096):
    """What a simple NFSv3 server would answer to READ, WRITE, GETATTR, NULL and MNT; None for
    others."""
    if request.program == MOUNT and request.procedure == 1:
        return success(request.xid, u32(0) + opaque(b"root-handle") + u32(1, AUTH_SYS))
    if request.procedure == NULL:
        return success(request.xid)
    if request.program != NFS or request.version != 3:
        return None
    if request.procedure == GETATTR:
        return success(request.xid, u32(0) + attributes(size))
    if request.procedure == READ:
        arguments = Reader(request.arguments)
        arguments.opaque()
        offset, count = arguments.u64(), min(arguments.u32(), 8 << 20)
        data = bytes([offset & 0xFF]) * count
        return success(request.xid, u32(0, 0) + u32(count, 0) + opaque(data))
    if request.procedure == WRITE:
        arguments = Reader(request.arguments)
        arguments.opaque(), arguments.u64()
        count = arguments.u32()
        return success(request.xid, u32(0) + u32(0, 0) + u32(count, FILE_SYNC) + b"verifier")
    if request.procedure == LOOKUP:
        return success(request.xid, u32(0) + opaque(b"file-handle") + u32(0, 0))
    return None


class Server:
    """A scripted RPC server: handler(call, connection) returns the reply's payload, None (no
    reply), or
    Server.CLOSE. Calls are recorded in order; `pause()` holds replies back until `resume()`."""

    CLOSE = object()

    def __init__(self, handler=None, port=0, reply_fragment=None):
        self.handler = handler or (lambda request, connection: canned(request))
        self.reply_fragment = reply_fragment
        self.calls = []
        self.accepted = 0
        self.open = 0
        self.errors = []
        self.changed = threading.Condition()
        self.paused, self.held = False, []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.connections = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.accepted += 1
                self.open += 1
                connection = Records(sock)
                sock.settimeout(None)
                connection.number = self.accepted
                self.connections[self.accepted] = connection
                self.changed.notify_all()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            while True:
                payload = connection.receive()
                request = Call(payload, connection.number, connection.fragments)
                with self.changed:
                    self.calls.append(request)
                    self.changed.notify_all()
                    if self.paused:
                        self.held.append((request, connection))
                        continue
                if not self._answer(request, connection):
                    break
        except (Ended, OSError, ValueError):
            pass
        except Exception as error:  # noqa: BLE001 - shown by the test that looks at errors
            self.errors.append(error)
        finally:
            with self.changed:
                self.open -= 1
                self.connections.pop(connection.number, None)
                self.changed.notify_all()
            self._shut(connection)
            connection.close()

    def _answer(self, request, connection):
        """False when the connection is to be closed."""
        if request.type != CALL:
            return True
        answer = self.handler(request, connection)
        if answer is Server.CLOSE:
            return False
        if answer is not None:
            connection.send(answer, self.reply_fragment)
        return True

    @staticmethod
    def _shut(connection):
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def pause(self):
        """From now on calls are read and recorded, not answered."""
        with self.changed:
            self.paused = True

    def resume(self):
        """Answers what was held back, in order, and goes on."""
        with self.changed:
            self.paused = False
            held, self.held = self.held, []
        for request, connection in held:
            try:
                self._answer(request, connection)
            except (OSError, ValueError):
                pass  # its connection is gone

    def until(self, condition, what):
        with self.changed:
            assert self.changed.wait_for(
                condition, process.PATIENCE_S
            ), f"never came: {what}; {len(self.calls)} calls, {self.open} open, {self.errors}"

    def wait_calls(self, count):
        self.until(lambda: len(self.calls) >= count, f"{count} calls at the server")

    def drop_connections(self):
        with self.changed:
            connections = list(self.connections.values())
        for connection in connections:
            self._shut(connection)

    def close(self):
        stop_listening(self.listener)
        self.drop_connections()
