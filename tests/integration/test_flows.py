# SPDX-License-Identifier: Apache-2.0
"""Which flow a request belongs to: each match rule, alone and together, HTTP and NFS."""
import pytest

from lab import process, rpc
from lab.spillway import http_config, nfs_config


def flow_of(proxy, action):
    """The name of the one flow whose counter grew by 1 through action()."""

    def counts():
        return {
            dict(labels)["flow"]: n
            for (name, labels), n in proxy.metrics().items()
            if name == "spillway_flow_requests_total"
        }

    before = counts()
    action()
    grown = {
        flow: n - before.get(flow, 0) for flow, n in counts().items() if n != before.get(flow, 0)
    }
    assert list(grown.values()) == [1], grown
    return next(iter(grown))


HTTP_MATCHES = [
    (
        "header",
        {"header": {"X-Tenant": "gold"}},
        ("GET", "/", [("x-tenant", "gold")]),
        ("GET", "/", [("X-Tenant", "golden")]),
    ),
    (
        "any value",
        {"header": {"X-Tenant": "*"}},
        ("GET", "/", [("X-Tenant", "whatever")]),
        ("GET", "/", []),
    ),
    (
        "host",
        {"host": "shop.example"},
        ("GET", "/", [], "Shop.Example:80"),
        ("GET", "/", [], "notshop.example"),
    ),
    (
        "host pattern",
        {"host": "*.shop.example"},
        ("GET", "/", [], "a.shop.example"),
        ("GET", "/", [], "ashop.example"),
    ),
    ("path", {"path": "/api"}, ("GET", "/x/../api/v1?q", []), ("GET", "/apis", [])),
    ("method", {"method": "PUT"}, ("PUT", "/", []), ("GET", "/", [])),
    (
        "two conditions",
        {"path": "/api", "header": {"X-Tenant": "gold"}},
        ("GET", "/api", [("X-Tenant", "gold")]),
        ("GET", "/api", [("X-Tenant", "silver")]),
    ),
]


@pytest.mark.parametrize(
    "match, inside, outside",
    [m[1:] for m in HTTP_MATCHES],
    ids=[m[0].replace(" ", "_") for m in HTTP_MATCHES],
)
def test_http_match(spillway, origin, client, match, inside, outside):
    port = process.free_port()
    proxy = spillway(
        http_config(
            [origin().address], port, {"flows": [{"name": "chosen", "weight": 2, "match": match}]}
        )
    )
    one = client(port)

    def ask(method, target, fields, host="test.example"):
        return lambda: one.ask(method, target, fields, b"" if method == "PUT" else None, host)

    assert flow_of(proxy, ask(*inside)) == "chosen"
    assert flow_of(proxy, ask(*outside)) == "default"


def test_client_prefix(spillway, origin, client):
    port = process.free_port()
    proxy = spillway(
        http_config(
            [origin().address],
            port,
            {"flows": [{"name": "net", "weight": 2, "match": {"client": "127.0.3.0/24"}}]},
        )
    )
    assert flow_of(proxy, lambda: client(port, source="127.0.3.7").ask()) == "net"
    assert flow_of(proxy, lambda: client(port, source="127.0.4.7").ask()) == "default"


def test_first_match_wins_and_a_flow_without_match_is_the_default(spillway, origin, client):
    port = process.free_port()
    proxy = spillway(
        http_config(
            [origin().address],
            port,
            {
                "flows": [
                    {"name": "first", "weight": 1, "match": {"path": "/a"}},
                    {"name": "second", "weight": 1, "match": {"path": "/a/b"}},
                    {"name": "others", "weight": 1},
                ]
            },
        )
    )
    one = client(port)
    assert flow_of(proxy, lambda: one.ask("GET", "/a/b/c")) == "first"
    assert flow_of(proxy, lambda: one.ask("GET", "/z")) == "others"


def test_nfs_uid_and_procedure_and_client(spillway, rpc_server, rpc_client):
    port = process.free_port()
    proxy = spillway(
        nfs_config(
            [rpc_server().address],
            port,
            {
                "flows": [
                    {"name": "alice", "weight": 1, "match": {"uid": 1001}},
                    {"name": "subnet", "weight": 1, "match": {"client": "127.0.5.0/24"}},
                    {"name": "reads", "weight": 1, "match": {"procedure": "read"}},
                    {"name": "writes", "weight": 1, "match": {"procedure": "write"}},
                    {"name": "names", "weight": 1, "match": {"procedure": "metadata"}},
                ]
            },
        )
    )
    alice, near, other = (
        rpc_client(port, uid=1001),
        rpc_client(port, uid=5, source="127.0.5.1"),
        rpc_client(port, uid=5),
    )
    assert flow_of(proxy, lambda: alice.read(b"h", 0, 10)) == "alice"
    assert flow_of(proxy, lambda: near.read(b"h", 0, 10)) == "subnet"
    assert flow_of(proxy, lambda: other.read(b"h", 0, 10)) == "reads"
    assert flow_of(proxy, lambda: other.write(b"h", 0, b"abcd")) == "writes"
    assert flow_of(proxy, lambda: other.getattr_size(b"h")) == "names"


def test_nfs4_compounds_have_a_class_and_a_uid(spillway, rpc_server, rpc_client):
    port = process.free_port()
    server = rpc_server(
        lambda request, connection: rpc.success(
            request.xid, rpc.u32(0) + rpc.opaque("") + rpc.u32(0)
        )
    )
    proxy = spillway(
        nfs_config(
            [server.address],
            port,
            {
                "flows": [
                    {"name": "alice", "weight": 1, "match": {"uid": 1001}},
                    {"name": "reads", "weight": 1, "match": {"procedure": "read"}},
                    {"name": "writes", "weight": 1, "match": {"procedure": "write"}},
                ]
            },
        )
    )
    one, alice = rpc_client(port), rpc_client(port, uid=1001)
    handle = rpc.u32(22) + rpc.opaque(b"h" * 20)
    read = rpc.u32(25) + b"s" * 16 + rpc.u64(0) + rpc.u32(4096)
    write = rpc.u32(38) + b"s" * 16 + rpc.u64(0) + rpc.u32(2) + rpc.opaque(b"data" * 9)
    assert flow_of(proxy, lambda: one.compound(0, handle, read)) == "reads"
    assert flow_of(proxy, lambda: one.compound(0, handle, write)) == "writes"
    assert flow_of(proxy, lambda: one.compound(0, rpc.PUTROOTFH, rpc.GETFH)) == "default"
    assert flow_of(proxy, lambda: alice.compound(0, handle, read)) == "alice"


def test_nfs_export_is_learnt_from_mount(spillway, rpc_server, rpc_client):
    def handler(request, connection):
        if request.program == rpc.MOUNT and request.procedure == 1:
            path = rpc.Reader(request.arguments).opaque()
            return rpc.success(
                request.xid,
                rpc.u32(0) + rpc.opaque(b"handle of " + path) + rpc.u32(1, rpc.AUTH_SYS),
            )
        return rpc.canned(request)

    port = process.free_port()
    proxy = spillway(
        nfs_config(
            [rpc_server(handler).address],
            port,
            {
                "flows": [
                    {"name": "images", "weight": 8, "match": {"export": "/images"}},
                    {"name": "rest", "weight": 1},
                ]
            },
        )
    )
    one = rpc_client(port)
    images, homes = one.mount("/images"), one.mount("/homes")
    assert flow_of(proxy, lambda: one.read(images, 0, 10)) == "images"
    assert flow_of(proxy, lambda: one.read(homes, 0, 10)) == "rest"
    two = rpc_client(port)
    assert (
        flow_of(proxy, lambda: two.read(images, 0, 10)) == "images"
    ), "what one connection learnt holds for all"


def test_keys_make_flows_that_are_counted_under_their_flow(spillway, origin, client):
    port = process.free_port()
    proxy = spillway(
        http_config(
            [origin().address],
            port,
            {"flows": [{"name": "tenants", "weight": 1, "by": {"header": "X-Tenant"}}]},
        )
    )
    one = client(port)
    for number in range(50):
        assert one.ask(fields=[("X-Tenant", f"t{number}")]).status == 200
    assert proxy.metric("spillway_flow_requests_total", flow="tenants") == 50


def test_many_keys_cost_only_while_they_are_active(spillway, origin, client):
    port = process.free_port()
    proxy = spillway(
        http_config(
            [origin().address],
            port,
            {"flows": [{"name": "tenants", "weight": 1, "by": {"header": "X-Tenant"}}]},
        )
    )
    one = client(port)
    for number in range(200):
        one.ask(fields=[("X-Tenant", f"warm-{number}")])
    before = proxy.resident_bytes()
    for start in range(0, 5000, 10):
        one.send(b"".join(http_request(f"key-{start + n}") for n in range(10)))
        for _ in range(10):
            assert one.reply().status == 200
    assert proxy.resident_bytes() - before < 4 << 20
    flow = next(f for f in proxy.show("flows") if f["name"] == "tenants")
    assert flow["instances"] <= 1000, "flows that are long idle are still kept"


def http_request(tenant):
    return f"GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: {tenant}\r\n\r\n".encode()
