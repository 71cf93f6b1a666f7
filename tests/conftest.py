# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by the integration and fault tests; children's logs are added to a failure's
report."""
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lab import http, nfs, process, rpc  # noqa: E402
from lab.spillway import Spillway  # noqa: E402


def pytest_configure(config):
    # A terminated run ends its children too.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, text in process.logs():
            if text.strip():
                report.sections.append((f"log of {name}", text))


@pytest.fixture
def closing():
    """closing(x) has x.close() called at the end of the test, whatever happens; returns x."""
    things = []

    def later(thing):
        things.append(thing)
        return thing

    yield later
    for thing in things[::-1]:
        thing.close()


@pytest.fixture
def spillway():
    """spillway(config, ...) starts a proxy; at the end of the test each must stop cleanly."""
    started = []

    def start(*arguments, **options):
        started.append(Spillway(*arguments, **options))
        return started[-1]

    yield start
    try:
        for proxy in started[::-1]:
            proxy.stop()
    finally:
        for proxy in started:
            proxy.kill()


@pytest.fixture
def origin(closing):
    """origin(handler, ...) starts a scripted HTTP origin."""
    return lambda *arguments, **options: closing(http.Origin(*arguments, **options))


@pytest.fixture
def client(closing):
    """client(port, ...) opens a raw HTTP client."""
    return lambda *arguments, **options: closing(http.Client(*arguments, **options))


@pytest.fixture(scope="session")
def nginx():
    server = http.Nginx()
    yield server
    server.close()


@pytest.fixture(scope="session")
def net():
    if nfs.left_out():
        pytest.skip("left out: SPILLWAY_TEST_NFS=no")
    network = nfs.Net()
    yield network
    network.close()


@pytest.fixture(scope="session")
def shared_ganesha(net):
    server = nfs.Ganesha(net)
    yield server
    server.close()


@pytest.fixture
def ganesha(shared_ganesha):
    """The NFS server, running, with an empty folder for the test."""
    if not shared_ganesha.server.running():
        shared_ganesha.start()
    shared_ganesha.new_folder()
    return shared_ganesha


@pytest.fixture(scope="session", autouse=True)
def nothing_left():
    yield
    process.end_all()


@pytest.fixture
def rpc_server(closing):
    """rpc_server(handler, ...) starts a scripted RPC server."""
    return lambda *arguments, **options: closing(rpc.Server(*arguments, **options))


@pytest.fixture
def rpc_client(closing):
    """rpc_client(port or socket, ...) opens a raw RPC client."""
    return lambda *arguments, **options: closing(rpc.Client(*arguments, **options))
