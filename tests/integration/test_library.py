# SPDX-License-Identifier: Apache-2.0
"""The scheduling library as a stranger uses it: installed, found by pkg-config, linked with nothing
else of ours."""
import os
import re
import shutil
import subprocess

import pytest

from lab import process

PREFIX = "/opt/spillway-test"
# Building the library once takes longer than any child of the other tests.
BUILD_LIMIT_S = 300
HEADERS = ("sched.h", "feedback.h", "window.h")


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=BUILD_LIMIT_S, check=False, **more)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Installed:
    """The library in a folder of its own, as a package would hold it before it is unpacked."""

    def __init__(self, root):
        self.root = root
        self.prefix = root + PREFIX
        # The programs' tests may run under a sanitizer, whose library no flags of ours would name.
        inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "SANITIZER")
        clean = {key: value for key, value in os.environ.items() if key not in inherited}
        folder = os.environ.get("SPILLWAY_BIN")
        build = os.path.dirname(os.path.dirname(folder)) if folder else "build"
        run("make", "-C", process.ROOT, f"BUILD={build}", "SANITIZER=", f"DESTDIR={root}",
            f"PREFIX={PREFIX}", "install-library", env=clean)
        self.environment = {**clean, "PKG_CONFIG_SYSROOT_DIR": root,
                            "PKG_CONFIG_PATH": f"{self.prefix}/lib/pkgconfig"}

    def pkg_config(self, *options):
        return run("pkg-config", *options, "spillway-sched", env=self.environment).split()

    def compile(self, compiler, source, program, *options):
        """Compiles in a folder from which nothing of the project can be reached by a relative path."""
        run(compiler, "-Wall", "-Wextra", "-Werror", *options, source, "-o", program,
            *self.pkg_config("--cflags", "--libs", "--static"), cwd=self.root)
        return program


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(str(tmp_path_factory.mktemp("library")))


def test_example_shares_two_to_one(installed, tmp_path):
    example = f"{installed.prefix}/share/doc/spillway/examples/fair_share.c"
    program = installed.compile("cc", example, str(tmp_path / "fair_share"), "-std=c11")
    assert run(program).splitlines() == ["weight 2: served 200", "weight 1: served 100"]


def test_example_is_short(installed):
    with open(f"{installed.prefix}/share/doc/spillway/examples/fair_share.c") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    assert len([line for line in text.splitlines() if line.strip()]) <= 40


def test_version_is_the_programs(installed):
    with open(os.path.join(process.ROOT, "proxy/control/version.h")) as file:
        version = re.search(r'SPILLWAY_VERSION "(.*)"', file.read()).group(1)
    assert installed.pkg_config("--modversion") == [version]


def test_paths_are_the_prefixes(installed):
    with open(f"{installed.prefix}/lib/pkgconfig/spillway-sched.pc") as file:
        assert f"prefix={PREFIX}\n" in file
    assert f"-I{installed.prefix}/include" in installed.pkg_config("--cflags")
    assert f"-L{installed.prefix}/lib" in installed.pkg_config("--libs")


def test_only_what_the_headers_name_is_visible(installed):
    named = set()
    for header in HEADERS:
        with open(f"{installed.prefix}/include/spillway/{header}") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        named |= set(re.findall(r"\b(sched_\w+)\(", text))
    listed = run("nm", "-g", "--defined-only", f"{installed.prefix}/lib/libspillway-sched.a")
    visible = {line.split()[2] for line in listed.splitlines() if len(line.split()) == 3}
    assert visible == named


def test_own_functions_of_a_program_do_not_collide(installed, tmp_path):
    """The library has inner functions of such names; a program may have its own."""
    source = tmp_path / "own.c"
    source.write_text('#include <spillway/sched.h>\n'
                      '#include <stdio.h>\n'
                      'int heap_push(void);\n'
                      'int heap_push(void) { return 1; }\n'
                      'int main(void)\n'
                      '{\n'
                      '    struct sched_params params = {.depth = 1};\n'
                      '    struct sched *s = sched_create(&params);\n'
                      '    struct sched_flow flow;\n'
                      '    if (s == NULL || sched_flow_init(&flow, 1) != 0 ||\n'
                      '        sched_flow_attach(s, &flow) != 0)\n'
                      '        return 1;\n'
                      '    printf("%d flows\\n", (int)sched_flows(s) * heap_push());\n'
                      '    sched_destroy(s);\n'
                      '    return 0;\n'
                      '}\n')
    program = installed.compile("cc", str(source), str(tmp_path / "own"), "-std=c11")
    assert run(program) == "1 flows\n"


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_stands_alone(installed, tmp_path, header):
    source = tmp_path / "alone.c"
    source.write_text(f"#include <spillway/{header}>\nint main(void) {{ return 0; }}\n")
    installed.compile("cc", str(source), str(tmp_path / "alone"), "-std=c11")


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")
def test_from_cpp(installed, tmp_path):
    source = tmp_path / "from.cc"
    source.write_text('#include <spillway/sched.h>\n'
                      '#include <spillway/feedback.h>\n'
                      '#include <spillway/window.h>\n'
                      'int main()\n'
                      '{\n'
                      '    sched_params params = {};\n'
                      '    params.depth = 1;\n'
                      '    sched *s = sched_create(&params);\n'
                      '    bool good = s != nullptr && sched_depth(s) == 1;\n'
                      '    sched_destroy(s);\n'
                      '    return good ? 0 : 1;\n'
                      '}\n')
    run(installed.compile("c++", str(source), str(tmp_path / "from"), "-std=c++17"))
