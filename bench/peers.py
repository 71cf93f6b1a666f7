# SPDX-License-Identifier: Apache-2.0
"""The proxies that a bench compares: ours, HAProxy and nginx, each with the settings that make it
fast for the job, one thread or worker each, on the proxy's core, logs off.

Every function starts one in a Lab and returns its Child, ready to serve, or None when the program
is not installed (or, for ours, not built).
"""

import pathlib
import time

from lab import PROXY_CORE, BenchError, free_port, program, tool

CONNECTION_LIMIT = 9000

SPILLWAY = """\
workers: 1
log: {{ target: stderr, level: warning, access: "off" }}
listeners:
{listeners}
pools:
{pools}
"""


def spillway(lab, listeners, pools, port, name="spillway"):
    """Starts our proxy from the two lists of its configuration, as YAML text."""
    path = program("spillway")
    if not path:
        return None
    text = SPILLWAY.format(listeners=listeners.rstrip(), pools=pools.rstrip())
    config = lab.write(f"{name}-{port}.yaml", text)
    return lab.start(name, [path, "-f", config], PROXY_CORE).wait_for_port(port)


def spillway_http(lab, backend, algorithm="sfqd", depth=32, flows="", name="spillway", queue=""):
    """HTTP with scheduling: `depth` requests at the backend at a time, the rest wait in flows."""
    port = free_port()
    listeners = f"""\
  - {{ name: web, bind: ["127.0.0.1:{port}"], protocol: http, pool: farm }}"""
    flows = flows or "\n".join(
        f"      - {{ name: f{i}, weight: {i + 1}, match: {{ header: {{ X-Flow: f{i} }} }} }}"
        for i in range(4))
    pools = f"""\
  - name: farm
    servers: [ {{ address: "{backend.address}", depth: {depth} }} ]
    scheduler: {{ algorithm: {algorithm} }}
{queue}    flows:
{flows}"""
    return spillway(lab, listeners, pools, port, name)


def spillway_nfs(lab, backend, algorithm="sfqd", depth=64, name="spillway"):
    """NFS with scheduling by user number; read-ahead as deep as the loads are."""
    port = free_port()
    listeners = f"""\
  - {{ name: nas, bind: ["127.0.0.1:{port}"], protocol: nfs, pool: array }}"""
    pools = f"""\
  - name: array
    servers: [ {{ address: "{backend.address}", depth: {depth} }} ]
    scheduler: {{ algorithm: {algorithm} }}
    flows:
      - {{ name: first, weight: 2, match: {{ uid: 1001 }} }}
      - {{ name: rest, weight: 1, by: uid }}"""
    return spillway(lab, listeners, pools, port, name)


def haproxy(lab, text, port, name="haproxy"):
    """Starts HAProxy in the foreground with one thread."""
    path = tool("haproxy")
    if not path:
        return None
    config = lab.write(f"{name}-{port}.cfg", text)
    return lab.start(name, [path, "-db", "-f", config], PROXY_CORE).wait_for_port(port)


def haproxy_global(extra=""):
    return f"""\
global
    nbthread 1
    maxconn {CONNECTION_LIMIT}
{extra}
defaults
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
    timeout http-keep-alive 60s
"""


def haproxy_http(lab, backend, server="", rules="", name="haproxy"):
    """HTTP: connections to the server kept and shared, the client's address told."""
    port = free_port()
    return haproxy(lab, haproxy_global() + f"""\
    mode http
    option forwardfor
    http-reuse always
frontend web
    bind 127.0.0.1:{port}
{rules}
    default_backend farm
backend farm
    server one {backend.address} pool-max-conn 256 {server}
""", port, name)


def haproxy_tcp(lab, backend, buffer_bytes=262144, name="haproxy-tcp"):
    """TCP: bytes passed on as they come, with buffers for large records."""
    port = free_port()
    return haproxy(lab, haproxy_global(f"    tune.bufsize {buffer_bytes}") + f"""\
    mode tcp
listen nas
    bind 127.0.0.1:{port}
    server one {backend.address}
""", port, name)


def nginx_http(lab, backend, name="nginx"):
    """HTTP: one worker, server connections kept, buffers for a 64 KiB body and more."""
    path = tool("nginx")
    if not path:
        return None
    port = free_port()
    folder = lab.folder / f"nginx-{port}"
    folder.mkdir()
    text = f"""\
daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections {CONNECTION_LIMIT * 2}; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 60s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream farm {{
        server {backend.address};
        keepalive 256;
        keepalive_requests 1000000000;
        keepalive_timeout 60s;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://farm;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_buffers 16 16k;
        }}
    }}
}}
"""
    if _user_is_not_root():
        text = text.replace("user root;\n", "")
    config = lab.write(f"nginx-{port}.conf", text)
    child = lab.start(name, [path, "-c", config, "-e", f"{folder}/start.log"], PROXY_CORE)
    child.wait_for_port(port)
    child.pid = _only_child(child)
    return child


def _user_is_not_root():
    return pathlib.Path("/proc/self").stat().st_uid != 0


def _only_child(child):
    """The worker of an nginx master."""
    path = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        pids = path.read_text().split()
        if len(pids) == 1:
            return int(pids[0])
        time.sleep(0.01)
    raise BenchError(f"{child.name} has no worker:\n{child.tail()}")
