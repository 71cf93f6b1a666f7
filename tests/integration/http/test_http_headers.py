# SPDX-License-Identifier: Apache-2.0
"""Header fields on the road: what is removed, what is added, which target counts (RFC 9110 §7.6,
RFC 9112 §3.2, RFC 7239)."""
import pytest

from lab import process
from lab.http import answer, request
from lab.spillway import http_config


@pytest.fixture
def road(spillway, origin):
    def build(handler=None, **listener):
        server = origin(handler)
        port = process.free_port()
        spillway(http_config([server.address], port, listener=listener))
        return port, server

    return build


def names(message):
    return [name.lower() for name, _ in message.fields]


def test_hop_by_hop_fields_stay_on_their_hop(road, client):
    port, server = road()
    fields = [
        ("Connection", "keep-alive, X-Private, te"),
        ("X-Private", "1"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Proxy-Connection", "keep-alive"),
        ("X-Public", "2"),
    ]
    assert client(port).ask(fields=fields).status == 200
    got = server.requests[0]
    for gone in (b"x-private", b"keep-alive", b"te", b"proxy-connection", b"upgrade"):
        assert gone not in names(got), gone
    assert got.get("x-public") == b"2"


def test_hop_by_hop_fields_of_replies_too(road, client):
    port, _ = road(
        lambda exchange: answer(
            fields=[
                ("Connection", "X-Private"),
                ("X-Private", "1"),
                ("Keep-Alive", "timeout=5"),
                ("X-Public", "2"),
            ]
        )
    )
    reply = client(port).ask()
    assert b"x-private" not in names(reply) and b"keep-alive" not in names(reply)
    assert reply.get("x-public") == b"2"


@pytest.mark.parametrize("nominated", ["X-Forwarded-For", "Via", "Forwarded", "X-Forwarded-Proto"])
def test_nominating_our_own_fields_does_not_remove_them(road, client, nominated):
    port, server = road()
    assert client(port).ask(fields=[("Connection", nominated), (nominated, "forged")]).status == 200
    value = server.requests[0].get(nominated)
    assert value and b"forged" not in value


@pytest.mark.parametrize("nominated", ["Host", "Content-Length"])
def test_nominating_framing_or_routing_fields_does_not_lose_them(road, client, nominated):
    port, server = road()
    reply = client(port).ask("PUT", "/", [("Connection", nominated)], body=b"12345")
    if reply.status == 400:
        assert server.requests == []
    else:
        assert (server.requests[0].get("host"), server.requests[0].body) == (
            b"test.example",
            b"12345",
        )


def test_via_and_forwarding_fields_are_added(road, client):
    port, server = road()
    assert client(port).ask(host="shop.example").status == 200
    got = server.requests[0]
    assert got.get("via").startswith(b"1.1 ")
    assert got.get("x-forwarded-for") == b"127.0.0.1"
    assert got.get("x-forwarded-proto") == b"http"
    assert got.get("x-forwarded-host") == b"shop.example"
    forwarded = got.get("forwarded").lower().replace(b'"', b"")
    parts = dict(p.strip().split(b"=", 1) for p in forwarded.split(b";"))
    assert parts[b"for"].startswith(b"127.0.0.1")
    assert parts[b"proto"] == b"http" and parts[b"host"] == b"shop.example"


def test_reply_has_via(road, client):
    port, _ = road(lambda exchange: answer(fields=[("Via", "1.0 inner")]))
    values = b", ".join(client(port).ask().all("via"))
    assert values.startswith(b"1.0 inner, 1.1 ")


def test_forwarding_fields_of_strangers_are_replaced(road, client):
    port, server = road()
    client(port).ask(
        fields=[
            ("X-Forwarded-For", "6.6.6.6"),
            ("Forwarded", "for=6.6.6.6"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "evil.example"),
        ]
    )
    assert b"6.6.6.6" not in server.requests[0].head
    assert b"evil" not in server.requests[0].head and b"https" not in server.requests[0].head


def test_forwarding_fields_of_trusted_proxies_are_extended(road, client):
    port, server = road(**{"trusted-proxies": ["127.0.0.0/8"]})
    client(port).ask(
        fields=[
            ("X-Forwarded-For", "6.6.6.6"),
            ("Forwarded", "for=6.6.6.6"),
            ("X-Forwarded-Proto", "https"),
        ]
    )
    got = server.requests[0]
    assert b", ".join(got.all("x-forwarded-for")) == b"6.6.6.6, 127.0.0.1"
    assert b", ".join(got.all("forwarded")).lower().startswith(b"for=6.6.6.6")
    assert got.get("x-forwarded-proto") == b"https"


def test_other_fields_pass_in_order_and_unchanged(road, client):
    port, server = road()
    fields = [
        ("Cookie", "a=1; b=2"),
        ("Accept", "text/html;q=0.5, */*"),
        ("X-A", "1"),
        ("X-A", "2"),
        ("X-Empty", ""),
    ]
    client(port).ask(fields=fields)
    got = [
        (n.decode(), v.decode())
        for n, v in server.requests[0].fields
        if n in (b"Cookie", b"Accept", b"X-A", b"X-Empty")
    ]
    assert got == fields


def test_set_cookie_fields_stay_apart(road, client):
    port, _ = road(lambda exchange: answer(fields=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]))
    assert client(port).ask().all("set-cookie") == [b"a=1", b"b=2"]


def test_bytes_beyond_ascii_in_values_pass(road, client):
    port, server = road()
    client(port).ask(fields=[("X-Name", "caf\xe9")])
    assert server.requests[0].get("x-name") == b"caf\xe9"


# ------------------------------------------------ targets


def test_absolute_form_wins_over_host(road, client):
    port, server = road()
    assert (
        client(port).ask("GET", "http://Real.example/path?q=1", host="other.example").status == 200
    )
    got = server.requests[0]
    assert got.target == b"/path?q=1"
    assert got.get("host").lower() == b"real.example"


def test_absolute_form_without_a_path(road, client):
    port, server = road()
    assert client(port).ask("GET", "http://real.example", host="real.example").status == 200
    assert server.requests[0].target == b"/"


def test_options_asterisk(road, client):
    port, server = road()
    assert client(port).ask("OPTIONS", "*").status == 200
    assert server.requests[0].target == b"*"


def test_target_passes_as_it_was_written(road, client):
    port, server = road()
    client(port).ask("GET", "/a%2Fb//c?x=%20&y=[1]")
    assert server.requests[0].target == b"/a%2Fb//c?x=%20&y=[1]"


def test_unknown_methods_pass(road, client):
    port, server = road()
    client(port).ask("PROPFIND", "/dav", [("Depth", "1")])
    assert server.requests[0].method == b"PROPFIND"


def test_http10_without_host_gets_one(road, client):
    port, server = road()
    one = client(port)
    one.send("GET / HTTP/1.0\r\n\r\n")
    assert one.reply().status == 200
    assert len(server.requests[0].all("host")) == 1, "HTTP/1.1 to the server needs Host"


# ------------------------------------------------ routes


def test_routes_choose_the_pool_by_normalised_target(spillway, origin, client):
    one, two = origin(lambda exchange: answer(b"api")), origin(lambda exchange: answer(b"static"))
    port = process.free_port()
    spillway(
        {
            "listeners": [
                {
                    "name": "front",
                    "bind": [f"127.0.0.1:{port}"],
                    "protocol": "http",
                    "routes": [
                        {"match": {"path": "/api"}, "pool": "api"},
                        {"match": {"host": "static.example"}, "pool": "static"},
                    ],
                }
            ],
            "pools": [
                {"name": "api", "servers": [{"address": one.address}]},
                {"name": "static", "servers": [{"address": two.address}]},
            ],
        }
    )
    ask = client(port).ask
    assert ask("GET", "/api/x").body == b"api"
    assert ask("GET", "/other/../%61pi/x").body == b"api"
    assert ask("GET", "/x", host="STATIC.example:80").body == b"static"
    assert ask("GET", "http://static.example/x", host="unknown.example").body == b"static"
    assert ask("GET", "/apis").status == 404, "a prefix ends at a slash"
    assert ask("GET", "/x", host="unknown.example").status == 404
    assert len(one.requests) == 2 and len(two.requests) == 2


def test_unknown_host_leaves_the_connection_usable(spillway, origin, client):
    server = origin()
    port = process.free_port()
    spillway(
        {
            "listeners": [
                {
                    "name": "front",
                    "bind": [f"127.0.0.1:{port}"],
                    "protocol": "http",
                    "routes": [{"match": {"host": "known.example"}, "pool": "farm"}],
                }
            ],
            "pools": [{"name": "farm", "servers": [{"address": server.address}]}],
        }
    )
    one = client(port)
    one.send(request(host="unknown.example") + request(host="known.example"))
    assert [one.reply().status, one.reply().status] == [404, 200]
