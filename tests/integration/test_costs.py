# SPDX-License-Identifier: Apache-2.0
"""What requests cost on the real road: header fields of nginx, measured time, tables by size; and
that shares follow the true costs."""
import time

import pytest

from lab import http, process
from lab.http import answer
from lab.load import Load, Service
from lab.spillway import http_config, nfs_config

TWO_FLOWS = [
    {"name": "a", "match": {"path": "/slow/a"}},
    {"name": "b", "match": {"path": "/slow/b"}},
]


class CostlyNginx(http.Nginx):
    """Says in X-Cost-Used what the query asked for, else nothing. Below /slow/ it takes 2 ms."""

    def __init__(self):
        self.behind = Service(slots=64, service="2ms")
        places = """location = /a {{ add_header X-Cost-Used $arg_used; return 200 "a\\n"; }}
    location = /twice {{ add_header X-Cost-Used 4; add_header X-Cost-Used 5; return 200 "2\\n"; }}
    location /slow/ {{
      proxy_pass http://@BEHIND@; proxy_http_version 1.1; proxy_set_header Connection "";
      add_header X-Cost-Used $arg_used;
    }}
    """
        place = "location = /empty"
        self.CONFIGURATION = http.Nginx.CONFIGURATION.replace(
            place, places.replace("@BEHIND@", self.behind.http) + place
        )
        super().__init__()

    def close(self):
        super().close()
        self.behind.close()


@pytest.fixture(scope="module")
def costly():
    server = CostlyNginx()
    yield server
    server.close()


def costs(proxy):
    """{flow name: cost charged so far}."""
    return {flow["name"]: flow["cost"] for flow in proxy.show("flows")}


def within(value, wanted, tolerance):
    assert wanted * (1 - tolerance) <= value <= wanted * (1 + tolerance), (
        f"{value}, not {wanted} within {tolerance:.0%}"
    )


# ------------------------------------------------ header fields


def test_header_fields_say_what_a_request_costs(spillway, costly, client):
    cost = {
        "by": "header",
        "request-header": "X-Cost",
        "reply-header": "X-Cost-Used",
        "max": 900,
        "fallback": 3,
    }
    port = process.free_port()
    proxy = spillway(http_config([costly.address], port, {"cost": cost}))
    one = client(port)
    charged = 0
    for fields, target, expected in [
        ([("X-Cost", "40")], "/a?used=25", 25),
        ([("X-Cost", "40")], "/a", 40),  # the server says nothing: as estimated
        ([("X-Cost", "40")], "/a?used=dear", 40),
        ([("X-Cost", "40")], "/a?used=0", 40),
        ([("X-Cost", "40")], "/twice", 40),
        ([("X-Cost", "40")], "/a?used=99999999999999999999999", 900),
        ([("X-Cost", "99999999999999999999999")], "/a", 900),
        ([("X-Cost", "-40")], "/a", 3),
        ([("X-Cost", "1e3")], "/a", 3),
        ([("X-Cost", "40"), ("X-Cost", "1")], "/a", 3),
        ([], "/a", 3),
        ([], "/a?used=7", 7),
        ([("X-Cost-Used", "1")], "/a?used=8", 8),  # the client's word for it is nothing
    ]:
        assert one.ask("GET", target, fields).status == 200
        charged += expected
        proxy.wait_metric("spillway_flow_cost_total", charged, flow="default")


def test_header_fields_pass_through(spillway, costly, client):
    cost = {"by": "header", "request-header": "X-Cost", "reply-header": "X-Cost-Used"}
    port = process.free_port()
    spillway(http_config([costly.address], port, {"cost": cost}))
    assert client(port).ask("GET", "/a?used=25").get("X-Cost-Used") == b"25"


def test_shares_follow_what_nginx_says(spillway, costly):
    """a's requests cost 8 times as much as b's, whatever the clients say; the weights are equal.
    The clients are so many that the queue does not run empty while the load generator waits."""
    cost = {"by": "header", "request-header": "X-Cost", "reply-header": "X-Cost-Used"}
    port = process.free_port()
    pool = {"cost": cost, "depth": 4, "flows": TWO_FLOWS}
    proxy = spillway(http_config([costly.address], port, pool))
    target = f"target=127.0.0.1:{port}"
    load = Load(
        [
            f"name=a,{target},path=/slow/a?used=80,header=X-Cost:1,concurrency=64",
            f"name=b,{target},path=/slow/b?used=10,header=X-Cost:80,concurrency=256",
        ]
    )
    wanted = 40000  # units of cost: 500 completions of a
    proxy.wait_metric("spillway_flow_cost_total", lambda units: units > wanted, flow="a")
    proxy.wait_metric("spillway_flow_cost_total", lambda units: units > wanted, flow="b")
    charged = costs(proxy)
    load.close()
    within(charged["a"] / charged["b"], 1, 0.03)


def test_replies_alone_teach_the_estimate(spillway, costly, client):
    """Without a request's field: depth in units of cost counts what replies have said before."""
    cost = {"by": "header", "reply-header": "X-Cost-Used", "fallback": 5}
    port = process.free_port()
    proxy = spillway(http_config([costly.address], port, {"cost": cost}))
    one = client(port)
    one.ask("GET", "/a?used=64")
    proxy.wait_metric("spillway_flow_cost_total", 64, flow="default")
    one.ask("GET", "/a")
    proxy.wait_metric("spillway_flow_cost_total", 128, flow="default")


# ------------------------------------------------ measured time


def test_time_at_the_server_is_charged(spillway, closing):
    service = closing(Service(slots=8, service="3ms", distribution="exponential"))
    port = process.free_port()
    pool = {"cost": {"by": "service-time", "unit": "1us"}, "depth": 8}
    # Two loops: requests end on another one than that which dispatched them.
    proxy = spillway(http_config([service.http], port, pool, workers=2))
    load = Load([f"target=127.0.0.1:{port},concurrency=16"])
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n > 500, flow="default")
    load.finish()
    proxy.wait_metric("spillway_flow_outstanding", 0, flow="default")
    metrics = proxy.metrics()
    seconds = metrics("spillway_flow_service_seconds_sum", flow="default")
    requests = metrics("spillway_flow_requests_total", flow="default")
    charged = metrics("spillway_flow_cost_total", flow="default")
    # Each is rounded to a microsecond, and one that was cut off at the end counts, too.
    assert abs(charged / 1e6 - seconds) <= requests * 1e-6 + 0.05 * seconds


def test_shares_follow_measured_time(spillway, origin):
    """b's requests take 8 times as long as a's, and its weight is 2."""

    def work(exchange):
        time.sleep(0.016 if exchange.request.target == b"/slow/b" else 0.002)
        return answer()

    server = origin(work)
    port = process.free_port()
    flows = [dict(TWO_FLOWS[0], weight=1), dict(TWO_FLOWS[1], weight=2)]
    pool = {"cost": {"by": "service-time", "unit": "10us"}, "depth": 4, "flows": flows}
    proxy = spillway(http_config([server.address], port, pool))
    target = f"target=127.0.0.1:{port}"
    load = Load(
        [
            f"name=a,{target},path=/slow/a,concurrency=64",
            f"name=b,{target},path=/slow/b,concurrency=64",
        ]
    )
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n > 400, flow="b")
    charged = costs(proxy)
    load.close()
    within(charged["b"] / charged["a"], 2, 0.03)


# ------------------------------------------------ tables


def test_nfs_reads_cost_by_size(spillway, closing):
    service = closing(Service())
    port = process.free_port()
    pool = {
        "cost": {
            "by": "table",
            "bytes-unit": "64KiB",
            "table": {"read": 40, "metadata": 3},
            "per-size": {"read": 16},
        },
        "flows": [
            {"name": "reads", "match": {"procedure": "read"}},
            {"name": "rest"},
        ],
    }
    proxy = spillway(nfs_config([service.nfs], port, pool))
    load = Load([f"proto=nfs,target=127.0.0.1:{port},op=read,bytes=128KiB,concurrency=4"])
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n > 50, flow="reads")
    load.finish()
    proxy.wait_metric("spillway_flow_outstanding", 0, flow="reads")
    metrics = proxy.metrics()
    requests = metrics("spillway_flow_requests_total", flow="reads")
    moved = sum(
        metrics(f"spillway_flow_bytes_{way}_total", flow="reads") for way in ("in", "out")
    )
    each = moved / requests
    assert each == int(each), "all reads are alike"
    expected = 40 + -(-16 * int(each) // 65536)
    assert expected == 40 + 32 + 1
    assert metrics("spillway_flow_cost_total", flow="reads") == expected * requests
    rest = metrics("spillway_flow_requests_total", flow="rest")
    assert metrics("spillway_flow_cost_total", flow="rest") == 3 * rest


def test_nfs_shares_by_the_calibrated_table(spillway, closing):
    """One flow reads 256 KiB at a time, the other asks for attributes: equal shares of cost."""
    service = closing(Service(slots=4, service="2ms"))
    port = process.free_port()
    pool = {
        "cost": {"by": "table"},
        "depth": 4,
        "queue": {"timeout": "off"},
        "flows": [
            {"name": "reads", "match": {"uid": 1}},
            {"name": "attributes", "match": {"uid": 2}},
        ],
    }
    proxy = spillway(nfs_config([service.nfs], port, pool))
    target = f"proto=nfs,target=127.0.0.1:{port}"
    load = Load(
        [
            f"name=reads,{target},op=read,bytes=256KiB,concurrency=64,uid=1",
            f"name=attributes,{target},op=getattr,concurrency=64,uid=2",
        ]
    )
    # Once both have set up their connections, which they do not do at the same speed.
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n > 100, flow="reads")
    before = costs(proxy)
    enough = proxy.metric("spillway_flow_requests_total", flow="reads") + 400
    proxy.wait_metric("spillway_flow_requests_total", lambda n: n > enough, flow="reads")
    after = costs(proxy)
    load.close()
    spent = {name: after[name] - before[name] for name in after}
    within(spent["reads"] / spent["attributes"], 1, 0.03)
