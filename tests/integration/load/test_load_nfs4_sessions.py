# SPDX-License-Identifier: Apache-2.0
"""spillload's NFSv4 flows against a scripted server that keeps the books of sessions, slots and open
owners strictly, and says what real servers say rarely: DELAY, GRACE, a lost session, nothing."""
import json
import os
import threading

import pytest

from lab import process, rpc
from lab.rpc import u32, u64, opaque

(CLOSE, GETATTR, GETFH, LOOKUP, OPEN, OPEN_CONFIRM, PUTFH, PUTROOTFH, READ) = (
    4,
    9,
    10,
    15,
    18,
    20,
    22,
    24,
    25,
)
REMOVE, RENEW, SETCLIENTID, SETCLIENTID_CONFIRM = 28, 30, 35, 36
EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, SEQUENCE = 42, 43, 44, 53
DESTROY_CLIENTID, RECLAIM_COMPLETE = 57, 58
DELAY, GRACE, STALE_CLIENTID, BAD_SEQID, BADSESSION = 10008, 10013, 10022, 10026, 10052
NOTHING = object()
SLOTS = 6


class Broken(AssertionError):
    pass


class Server:
    """fault(operation, count) is asked before each operation: a status to fail with, NOTHING for no
    reply to the call at all, or None. Breaches of the protocol are kept in `broken`."""

    def __init__(self, fault=lambda operation, count: None, lease_s=None, fragment=None):
        self.fault = fault
        self.lease_s = lease_s
        self.renewals = 0
        self.counts = {}
        self.sessions = {}  # id: {slot: sequence of the last call}
        self.clients = {}  # id: sequence of the next CREATE_SESSION
        self.owners = {}  # 4.0: (client, owner): sequence of the next operation
        self.state_owner = {}
        self.confirmed = set()
        self.next_id = 1
        self.broken = []
        self.lock = threading.Lock()
        self.rpc = rpc.Server(self.answer, reply_fragment=fragment)
        self.address = self.rpc.address

    def close(self):
        self.rpc.close()

    def check(self, holds, what):
        if not holds:
            raise Broken(what)

    def answer(self, request, connection):
        with self.lock:
            try:
                return self.compound(request)
            except Broken as breach:
                self.broken.append(str(breach))
                return rpc.Server.CLOSE

    def compound(self, request):
        reader = rpc.Reader(request.arguments)
        reader.opaque()
        self.minor, operations = reader.u32(), reader.u32()
        results, status = [], 0
        first = request.arguments[reader.at : reader.at + 4]
        self.renewals += operations == 1 and first in (u32(SEQUENCE), u32(RENEW))
        for place in range(operations):
            operation = reader.u32()
            self.check((operation == SEQUENCE) <= (place == 0), "SEQUENCE is the first")
            self.counts[operation] = self.counts.get(operation, 0) + 1
            fault = self.fault(operation, self.counts[operation])
            if fault is NOTHING:
                return None
            done = self.operate(operation, reader, failing=fault is not None)
            status, result = (fault, b"") if fault is not None else done
            results.append(u32(operation, status) + result)
            if status:
                break
        else:
            self.check(reader.at == len(request.arguments), "nothing behind the last operation")
        return rpc.success(
            request.xid, u32(status) + opaque("") + u32(len(results)) + b"".join(results)
        )

    def operate(self, operation, reader, failing):
        name = f"op_{operation}"
        self.check(hasattr(self, name), f"operation {operation} is known")
        return getattr(self, name)(reader, failing)

    # ---- minor version 1

    def op_42(self, reader, failing):  # EXCHANGE_ID
        reader.u64(), reader.opaque(), reader.take(12)
        client = self.new_id()
        self.clients[client] = 1
        return 0, u64(client) + u32(1, 0x10000, 0) + u64(0) + opaque("m") + opaque("s") + u32(0)

    def op_43(self, reader, failing):  # CREATE_SESSION
        client, sequence = reader.u64(), reader.u32()
        reader.take(4 + 2 * 28 + 12)
        if client not in self.clients:
            return STALE_CLIENTID, b""
        self.check(sequence == self.clients[client], "CREATE_SESSION's sequence")
        self.clients[client] += 1
        session = u64(self.new_id(), client)
        self.sessions[session] = {}
        channel = u32(0, 1 << 20, 1 << 20, 4096, 16, SLOTS, 0)
        return 0, session + u32(sequence, 0) + channel + channel

    def op_53(self, reader, failing):  # SEQUENCE
        session = reader.take(16)
        sequence, slot, highest, _ = (reader.u32() for _ in range(4))
        if session not in self.sessions:
            return BADSESSION, b""
        slots = self.sessions[session]
        self.check(slot < SLOTS and highest < SLOTS, "a slot that was granted")
        self.check(sequence == slots.get(slot, 0) + 1, f"slot {slot}: {sequence} after {slots}")
        if not failing:
            slots[slot] = sequence
        return 0, session + u32(sequence, slot, SLOTS - 1, SLOTS - 1, 0)

    def op_58(self, reader, failing):  # RECLAIM_COMPLETE
        reader.u32()
        return 0, b""

    def op_44(self, reader, failing):  # DESTROY_SESSION
        return (0 if self.sessions.pop(reader.take(16), None) is not None else BADSESSION), b""

    def op_57(self, reader, failing):  # DESTROY_CLIENTID
        return (0 if self.clients.pop(reader.u64(), None) else STALE_CLIENTID), b""

    # ---- minor version 0

    def op_35(self, reader, failing):  # SETCLIENTID
        reader.u64(), reader.opaque(), reader.u32(), reader.opaque(), reader.opaque(), reader.u32()
        return 0, u64(self.new_id(), 77)

    def op_36(self, reader, failing):  # SETCLIENTID_CONFIRM
        client = reader.u64()
        self.check(reader.u64() == 77, "the verifier that was given")
        self.clients[client] = 1
        return 0, b""

    def op_30(self, reader, failing):  # RENEW
        return (0 if reader.u64() in self.clients else STALE_CLIENTID), b""

    def of_owner(self, owner, sequence):
        expected = self.owners.get(owner, sequence)
        self.check(sequence == expected, f"{owner}: {sequence}, not {expected}")
        self.owners[owner] = sequence + 1

    def op_18(self, reader, failing):  # OPEN
        sequence = reader.u32()
        reader.take(8)
        owner = (reader.u64(), reader.opaque())
        self.check((reader.u32(), reader.u32()) == (1, 0), "an unchecked create")
        reader.take(12), reader.opaque()
        self.check(reader.u32() == 0, "a claim by name")
        reader.opaque()
        state = u32(1) + u64(self.new_id()) + u32(0)
        if self.minor == 0:
            if owner[0] not in self.clients:
                return STALE_CLIENTID, b""
            self.of_owner(owner, sequence)
        confirm = self.minor == 0 and owner not in self.confirmed
        if not failing:
            self.state_owner[state[4:]] = owner
        self.current = state
        return 0, state + u32(1) + u64(1, 2) + u32(2 if confirm else 0, 0, 0)

    def op_20(self, reader, failing):  # OPEN_CONFIRM
        state, sequence = reader.take(16), reader.u32()
        self.of_owner(self.state_owner[state[4:]], sequence)
        self.confirmed.add(self.state_owner[state[4:]])
        return 0, state

    def op_4(self, reader, failing):  # CLOSE
        sequence, state = reader.u32(), reader.take(16)
        if self.minor == 0:
            owner = self.state_owner[state[4:]]
            self.check(owner in self.confirmed, "an owner that was confirmed")
            self.of_owner(owner, sequence)
        else:
            self.check(state == u32(1, 0, 0, 0), "the current stateid")
            state = self.current
        if not failing:
            del self.state_owner[state[4:]]
        return 0, state

    # ---- files

    def op_24(self, reader, failing):
        return 0, b""

    def op_22(self, reader, failing):
        reader.opaque()
        return 0, b""

    op_15 = op_22  # LOOKUP

    def op_28(self, reader, failing):  # REMOVE
        reader.opaque()
        return 0, u32(1) + u64(1, 2)

    def op_10(self, reader, failing):
        return 0, opaque("handle")

    def op_9(self, reader, failing):
        wanted = [reader.u32() for _ in range(reader.u32())]
        if wanted[0] & 1 << 10 and self.lease_s:
            return 0, u32(1, 1 << 10) + opaque(u32(self.lease_s))
        return 0, u32(1, 0x10) + opaque(u64(1 << 20))

    def op_26(self, reader, failing):  # READDIR
        reader.take(24)
        for _ in range(reader.u32()):
            reader.u32()
        entry = u32(1, 0, 7) + opaque("entry") + u32(0) + opaque("")
        return 0, u64(1) + 40 * entry + u32(0, 1)

    def op_25(self, reader, failing):
        self.check(reader.take(16) == bytes(16), "the anonymous stateid")
        reader.u64()
        return 0, u32(0) + opaque(b"d" * reader.u32())

    def new_id(self):
        self.next_id += 1
        return self.next_id


@pytest.fixture
def run(closing):
    """run(server, keys) sends until the flow's time is over; its figures. The books were kept."""

    def now(server, keys, duration="700ms"):
        closing(server)
        path = os.path.join(process.scratch(), "load.json")
        flow = f"name=x,proto=nfs,target={server.address},export=/e,connections=1,{keys}"
        argv = [process.program("spillload"), "--duration", duration, "--json", path]
        load = process.Process("spillload", [*argv, "--flow", flow])
        status = load.wait(60)
        assert (status, server.broken, server.rpc.errors) == (0, [], []), load.log()
        with open(path) as file:
            return dict(json.load(file)["flows"][0], log=load.log())

    return now


def counted(flow):
    return {name: count for name, count in flow["outcomes"].items() if count}


def at(operation, counts, status):
    """A fault of the operation's calls of these numbers."""
    return lambda op, count: status if op == operation and count in counts else None


@pytest.mark.parametrize("version", ["4.0", "4.1"])
@pytest.mark.parametrize("op", ["read", "create", "remove"])
def test_the_books_are_kept(run, version, op):
    server = Server()
    flow = run(server, f"version={version},concurrency=20,op={op}")
    assert list(counted(flow)) == ["ok"]
    assert not server.state_owner, "all that was opened was closed"
    if version == "4.1":
        assert (server.sessions, server.clients) == ({}, {}), "it took leave"


@pytest.mark.parametrize("operation", [SEQUENCE, PUTFH, READ])
def test_delay_is_a_refusal(run, operation):
    """On SEQUENCE it does not advance the slot, behind it it does."""
    flow = run(Server(at(operation, range(20, 30), DELAY)), "version=4.1,concurrency=4,op=read")
    assert counted(flow)["refused"] == 10
    assert set(counted(flow)) == {"ok", "refused"}


def test_delay_in_4_0_advances_the_open_owner(run):
    flow = run(Server(at(OPEN, range(5, 9), DELAY)), "version=4.0,concurrency=2,op=create")
    assert counted(flow)["refused"] == 4
    assert set(counted(flow)) == {"ok", "refused"}


def test_delay_of_a_close_is_tried_again(run):
    server = Server(at(CLOSE, (3,), DELAY))
    flow = run(server, "version=4.0,concurrency=2,op=create")
    assert set(counted(flow)) == {"ok"}
    assert not server.state_owner


@pytest.mark.parametrize("version, op, where", [("4.1", "read", READ), ("4.0", "create", OPEN)])
def test_grace_is_waited_for(run, version, op, where):
    flow = run(Server(at(where, range(1, 6), GRACE)), f"version={version},concurrency=4,op={op}")
    assert set(counted(flow)) == {"ok"}


def test_a_lost_session_is_set_up_again(run):
    """The server forgets all at once: every call in flight meets BADSESSION, and is sent again."""

    def forget(operation, count):
        if operation == SEQUENCE and count == 50:
            server.sessions.clear()
            server.clients.clear()

    server = Server(forget)
    flow = run(server, "version=4.1,concurrency=4,op=read")
    assert set(counted(flow)) == {"ok"}
    assert server.counts[EXCHANGE_ID] == 2
    assert server.counts[CREATE_SESSION] == 2
    assert flow["reconnects"] == 0


def test_a_lost_client_is_set_up_again(run):
    def forget(operation, count):
        if operation == OPEN and count == 20:
            server.clients.clear()

    server = Server(forget)
    flow = run(server, "version=4.0,concurrency=4,op=create")
    assert set(counted(flow)) == {"ok"}
    assert server.counts[SETCLIENTID] >= 2


def test_a_bad_seqid_changes_the_owner(run):
    server = Server(at(OPEN, (7,), BAD_SEQID))
    flow = run(server, "version=4.0,concurrency=2,op=create")
    assert set(counted(flow)) == {"ok"}
    assert len({owner for _, owner in server.owners}) >= 3


def test_a_slot_without_reply_is_not_used_again(run):
    """Two slots of four wait for ever; then the others do, and a new session begins."""
    flow = run(
        Server(at(READ, (10, 11), NOTHING)), "version=4.1,concurrency=4,op=read,timeout=200ms"
    )
    assert counted(flow)["timeout"] == 2
    assert set(counted(flow)) == {"ok", "timeout"}
    assert flow["reconnects"] == 0
    server = Server(at(READ, (10, 11, 12, 13), NOTHING))
    flow = run(server, "version=4.1,concurrency=4,op=read,timeout=200ms,pause=1ms", "2s")
    assert counted(flow)["timeout"] == 4
    assert set(counted(flow)) == {"ok", "timeout"}
    assert flow["reconnects"] == 1


@pytest.mark.parametrize("fragment", [4, 511, 512, 513])
@pytest.mark.parametrize("op", ["readdir", "read"])
def test_replies_in_pieces(run, op, fragment):
    flow = run(Server(fragment=fragment), f"version=4.1,concurrency=4,op={op}", "300ms")
    assert set(counted(flow)) == {"ok"}


@pytest.mark.parametrize("version", ["4.0", "4.1"])
def test_the_lease_is_kept(run, version):
    """A flow that has nothing to send renews its lease all the same."""
    server = Server(lease_s=1)
    run(server, f"version={version},rate=1/s,arrival=constant,op=read", "2s")
    assert server.renewals > 0


def test_fewer_slots_than_clients_are_told(run):
    flow = run(Server(), f"version=4.1,concurrency={SLOTS},op=read")
    assert flow["delayed"] == 0
    flow = run(Server(), f"version=4.1,concurrency={2 * SLOTS},op=read")
    assert flow["delayed"] > 0
    assert f"takes {SLOTS} requests at once" in flow["log"]
