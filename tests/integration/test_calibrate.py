# SPDX-License-Identifier: Apache-2.0
"""spillctl calibrate against nfs-ganesha, nginx and our own origin: what it prints is a
configuration, nothing of it stays behind, and failures say where and what to do."""
import json
import os
import signal
import tempfile

import pytest
import yaml

from lab import http, nfs, process
from lab.load import Service

PROCEDURES = (
    "null getattr setattr lookup access readlink readdir readdirplus fsstat fsinfo pathconf link "
    "symlink create rename remove mkdir rmdir read write commit metadata mknod"
).split()


class DavNginx(http.Nginx):
    """Takes PUT and DELETE below /dav/."""

    CONFIGURATION = http.Nginx.CONFIGURATION.replace(
        "location = /empty",
        """location /dav/ {{ dav_methods PUT DELETE; }}
    location = /closing {{ keepalive_timeout 0; return 200 "bye\\n"; }}
    location = /empty""",
    )

    def __init__(self):
        super().__init__()
        os.mkdir(os.path.join(self.files, "dav"))
        for size in (100, 10000, 300000):
            self.put(f"f{size}", b"x" * size)


@pytest.fixture(scope="module")
def dav():
    server = DavNginx()
    yield server
    server.close()


def calibrate(*arguments, check=True, wrap=lambda argv: argv):
    return process.run(
        wrap([process.program("spillctl"), "-t", "20", "calibrate", "--time", "5", *arguments]),
        check=check,
    )


def check_configuration(printed, protocol):
    """What was printed, as the only pool's cost, passes the proxy's own check without a word."""
    config = {
        "listeners": [{"name": "l", "bind": "127.0.0.1:1", "protocol": protocol, "pool": "p"}],
        "pools": [{"name": "p", "servers": ["127.0.0.1:1"], "cost": printed["cost"]}],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(config, file)
        file.flush()
        done = process.run([process.program("spillway"), "-c", "-f", file.name], check=True)
    assert "warning" not in done.stdout + done.stderr


# ------------------------------------------------ NFS


def test_a_table_of_ganesha(ganesha, net):
    done = calibrate("nfs", f"{nfs.SERVER_ADDRESS}:{nfs.NFS_PORT}{ganesha.folder}", wrap=net.wrap)
    printed = yaml.safe_load(done.stdout)
    check_configuration(printed, "nfs")
    cost = printed["cost"]
    assert sorted(cost["table"]) == sorted(PROCEDURES)
    assert cost["bytes-unit"] == "64KiB"
    assert {"read", "write", "commit"} <= set(cost["per-size"])
    assert cost["per-size"]["commit"] == 0
    # Whatever the machine is busy with, moving 64 KiB is not nothing.
    assert cost["per-size"]["read"] > 0 and cost["per-size"]["write"] > 0
    assert "# read" in done.stdout and "1 MiB" in done.stdout
    assert "working in" in done.stderr
    assert os.listdir(ganesha.folder) == []


def test_json_of_ganesha(ganesha, net):
    target = f"{nfs.SERVER_ADDRESS}:{nfs.NFS_PORT}{ganesha.folder}"
    done = calibrate(
        "--json", "--depth", "4", "--mount-port", str(nfs.MOUNT_PORT), "nfs", target, wrap=net.wrap
    )
    result = json.loads(done.stdout)
    check_configuration(result, "nfs")
    assert result["depth"] == 4 and result["target"] == target
    rows = {(row["operation"], row["size_bytes"]): row for row in result["rows"]}
    assert all(row["alone_seconds"] > 0 and row["busy_seconds"] > 0 for row in rows.values())
    # What was asked for has moved, and little else.
    for size in (4096, 65536, 1048576):
        for operation in ("read", "write"):
            assert size < rows[operation, size]["moved_bytes"] < size + 400
    assert result["fits"]["read"]["sizes"] == 5
    assert result["notes"] == []


def test_interrupted_it_leaves_nothing(ganesha, net):
    argv = [process.program("spillctl"), "calibrate", "--time", "200", "nfs"]
    target = f"{nfs.SERVER_ADDRESS}:{nfs.NFS_PORT}{ganesha.folder}"
    child = net.start("calibrate", [*argv, target])
    process.wait_until(lambda: os.listdir(ganesha.folder), "the scratch folder")
    inside = os.path.join(ganesha.folder, os.listdir(ganesha.folder)[0])
    process.wait_until(
        lambda: any(name.startswith("create") for name in os.listdir(inside)), "files being made"
    )
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 1
    assert "stopped by signal 15" in child.log()
    assert os.listdir(ganesha.folder) == []


def test_who_may_not_write_is_told(ganesha, net):
    os.chmod(ganesha.folder, 0o755)
    target = f"{nfs.SERVER_ADDRESS}:{nfs.NFS_PORT}{ganesha.folder}"
    done = calibrate(
        "--uid", "4711", "--gid", "4711", "nfs", target, check=False, wrap=net.wrap
    )
    assert done.returncode == 1 and done.stdout == ""
    assert target in done.stderr and "user 4711 can't make a folder" in done.stderr
    assert "EACCES" in done.stderr and "--uid" in done.stderr


def test_an_export_that_is_not_there(ganesha, net):
    target = f"{nfs.SERVER_ADDRESS}:{nfs.NFS_PORT}/nowhere"
    done = calibrate("nfs", target, check=False, wrap=net.wrap)
    assert done.returncode == 1 and done.stdout == ""
    assert f"{nfs.SERVER_ADDRESS}:{nfs.MOUNT_PORT}" in done.stderr
    assert "no export /nowhere" in done.stderr and f"one of: {ganesha.export}" in done.stderr


@pytest.mark.parametrize("option, value, refused", [
    ("--error", "100%:nfs=NOTSUPP", "can't ask for its limits (NFS status 10004 (NOTSUPP))"),
    ("--memory", "64KiB", "can't write (NFS status 28 (ENOSPC))"),
])
def test_a_server_that_refuses_some_procedures(option, value, refused, closing):
    """The first thing that is refused is named."""
    service = closing(Service(extra=[option, value]))
    done = calibrate("nfs", f"{service.nfs}/export", check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert refused in done.stderr


def test_no_nfs_there(dav, closing):
    done = calibrate("nfs", f"127.0.0.1:{dav.port}/data", check=False)
    assert done.returncode == 69
    assert "does not speak RPC" in done.stderr and f"127.0.0.1:{dav.port}" in done.stderr
    done = calibrate("nfs", f"127.0.0.1:{process.free_port()}/data", check=False)
    assert done.returncode == 69 and "nothing listens there" in done.stderr


# ------------------------------------------------ HTTP


def test_a_table_of_nginx(dav):
    urls = [f"http://127.0.0.1:{dav.port}/f{size}" for size in (100, 10000, 300000)]
    done = calibrate("--put", f"http://127.0.0.1:{dav.port}/dav/", "http", *urls)
    printed = yaml.safe_load(done.stdout)
    check_configuration(printed, "http")
    assert sorted(printed["cost"]["table"]) == ["DELETE", "GET", "HEAD", "PUT", "default"]
    assert printed["cost"]["per-size"]["PUT"] > 0
    assert os.listdir(os.path.join(dav.files, "dav")) == []
    # A URL that has to be asked for anew, connection by connection.
    result = json.loads(
        calibrate("--json", "http", f"http://127.0.0.1:{dav.port}/closing").stdout
    )
    assert [row["size_bytes"] for row in result["rows"]] == [4, 0]
    assert sorted(result["cost"]["table"]) == ["GET", "HEAD", "default"]


def test_http_failures_say_where_and_what_to_do(dav):
    base = f"http://127.0.0.1:{dav.port}"
    for arguments, status, words in [
        (["http", f"{base}/none"], 1, f"{base}/none: GET is answered 404"),
        (["--put", f"{base}/", "http", f"{base}/f100"], 1, "PUT is answered 405"),
        (["http", f"http://127.0.0.1:{process.free_port()}/"], 69, "nothing listens there"),
        (["http", "https://127.0.0.1/"], 64, "TLS"),
        (["http", "127.0.0.1/f"], 64, "is no URL"),
        (["http"], 64, "nothing to calibrate"),
        (["ftp", "x"], 64, "nfs or http"),
        (["nfs", "nohost"], 64, "is no export"),
        (["--depth", "1", "http", base], 64, "--depth"),
        (["--time", "0", "http", base], 64, "--time"),
        (["--nothing"], 64, "--nothing"),
    ]:
        done = calibrate(*arguments, check=False)
        assert done.returncode == status, (arguments, done.stderr)
        assert words in done.stderr and done.stdout == "", (arguments, done.stderr)


def test_a_server_that_falls_silent(origin):
    server = origin(lambda exchange: http.Origin.CLOSE)
    done = calibrate("http", f"http://{server.address}/", check=False)
    assert done.returncode == 69
    assert "closed the connection instead of answering" in done.stderr
