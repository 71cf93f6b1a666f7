# SPDX-License-Identifier: Apache-2.0
"""spillload fault on real processes, control groups and a real kernel's netem: what it does is there, and
nothing is left of it, whoever is killed and whenever."""
import glob
import json
import os
import signal
import subprocess
import sys

import pytest

from lab import nfs, process

BUSY = "while True: pass"
IDLE = "import signal\nwhile True: signal.pause()"
# A parent and its child; the child's number is told on the first line.
FAMILY = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\nwhile True: time.sleep(60)"


class Service:
    """A process to do things to."""

    def __init__(self, text=IDLE, **options):
        self.process = process.Process("service", [sys.executable, "-c", text], **options)
        self.pid = self.process.pid

    def state(self):
        return process_state(self.pid)

    def goes_on(self):
        """Runs, or sleeps because it wants to."""
        return self.state() in ("R", "S", "D")

    def close(self):
        self.process.kill()


def process_state(pid):
    """The letter of /proc/PID/stat, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def gone(pid):
    return process_state(pid) in (None, "Z")


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    name, fields = stat.read().rsplit(")", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields.split()[1]) == pid:
                found.append((int(entry), name.split("(", 1)[1]))
    return found


class Fault:
    """spillload fault at work, with a journal folder of its own."""

    def __init__(self, folder, *arguments, **options):
        self.folder = folder
        self.process = process.Process("fault", [
            process.program("spillload"), "fault", "--json-events", f"--journal={folder}", *arguments],
            **options)
        self.pid = self.process.pid

    def events(self, name=None):
        lines = [json.loads(line) for line in self.process.log().splitlines() if line.startswith("{")]
        return [line for line in lines if name in (None, line["event"])]

    def wait_event(self, name, count=1):
        self.process.wait_log(f'"event":"{name}"') if count == 1 else process.wait_until(
            lambda: len(self.events(name)) >= count or not self.process.running(), f"{count} x {name}")
        assert len(self.events(name)) >= count, self.process.log()
        return self.events(name)[-1]

    def keeper(self):
        return process.wait_until(
            lambda: [pid for pid, name in children(self.pid) if name == "spillload-keep"],
            "the keeper is there")[0]

    def journals(self):
        return os.listdir(self.folder)

    def kill(self):
        """kill -9 of the doer alone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL

    def wait(self):
        status = self.process.wait()
        assert "Sanitizer" not in self.process.log(), self.process.log()
        return status


@pytest.fixture
def folder():
    path = process.scratch("spillway-faults-")
    os.chmod(path, 0o700)
    return path


@pytest.fixture
def service(closing):
    return closing(Service())


@pytest.fixture
def fault(folder):
    """fault(...) starts one; at the end nothing may be owed any more."""
    started = []

    def start(*arguments, **options):
        started.append(Fault(folder, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.running():
            one.process.kill()
    run_fault(folder, "--undo", check=False)
    assert os.listdir(folder) == []


def run_fault(folder, *arguments, check=True, **options):
    done = process.run([process.program("spillload"), "fault", f"--journal={folder}", *arguments], check=check,
                       **options)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def cpu_group_of(pid):
    """(folder of the version 1 cpu group of a process) or a skip where there is none."""
    with open("/proc/mounts") as mounts:
        for line in mounts:
            _, point, kind, options = line.split()[:4]
            if kind == "cgroup" and "cpu" in options.split(","):
                break
        else:
            pytest.skip("no cpu controller of control groups version 1 here")
    with open(f"/proc/{pid}/cgroup") as groups:
        for line in groups:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "cpu" in controllers.split(","):
                return os.path.normpath(point + "/" + path)
    raise AssertionError(f"process {pid} is in no cpu group")


def can_make_groups(group):
    return os.access(group, os.W_OK) and os.geteuid() == 0


@pytest.fixture
def group(service):
    found = cpu_group_of(service.pid)
    if not can_make_groups(found):
        pytest.skip("control groups can't be made here")
    return found


# ---------------------------------------------------------------- what it does


def test_pause_and_go_on(fault, service):
    one = fault(f"pause,pid={service.pid},for=200ms,every=400ms,times=2")
    one.wait_event("begin", 2)
    assert one.wait() == 0
    assert [event["event"] for event in one.events()] == ["ready", "begin", "end", "begin", "end", "done"]
    assert one.events("begin")[0]["at_s"] < one.events("end")[0]["at_s"] < one.events("begin")[1]["at_s"]
    assert service.goes_on()


def test_paused_while_it_lasts(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s")
    one.wait_event("begin")
    process.wait_until(lambda: service.state() == "T", "the service stands still")
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0
    assert service.goes_on()
    assert one.events()[-1] == {"event": "done"}


def test_children_are_paused_too(fault, closing):
    family = closing(Service(FAMILY))
    process.wait_until(lambda: family.process.log().strip(), "the child is there")
    child = int(family.process.log())
    one = fault(f"pause,pid={family.pid},for=60s,children=yes")
    process.wait_until(lambda: (family.state(), process_state(child)) == ("T", "T"), "both stand still")
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0
    assert family.goes_on() and process_state(child) in ("R", "S", "D")


def test_a_stop_of_somebody_else_is_kept(fault, service):
    os.kill(service.pid, signal.SIGSTOP)
    process.wait_until(lambda: service.state() == "T", "the service stands still")
    one = fault(f"pause,pid={service.pid},for=100ms")
    assert one.wait() == 0
    assert len(one.events("skipped")) == 1
    assert service.state() == "T"


@pytest.mark.parametrize("second", ["pause,pid={},for=60s", "cpu,pid={},means=duty,for=60s"])
def test_a_stop_of_the_same_command_is_kept(fault, service, second):
    one = fault(f"pause,pid={service.pid},for=60s", second.format(service.pid))
    one.wait_event("skipped")
    process.wait_until(lambda: service.state() == "T", "the service stands still")
    assert [(event["event"], event["fault"]) for event in one.events() if "fault" in event] == [("begin", 0), ("skipped", 1)]
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0
    assert service.goes_on()


def test_kill_and_restart(fault, folder, closing):
    victim = closing(Service())
    told = os.path.join(process.scratch(), "pid")
    one = fault(f"kill,pid={victim.pid},for=10ms,restart=echo $$ >>{told}; exec sleep 1000,every=500ms,times=2")
    assert one.wait() == 0, one.process.log()
    first, second = map(int, process.wait_until(lambda: len(open(told).read().split()) == 2 and
                                                open(told).read().split(), "both have told their number"))
    assert one.events("end")[0]["pid"] == first and one.events("end")[1]["pid"] == second
    assert gone(victim.pid) and gone(first) and process_state(second) in ("R", "S", "D")
    os.kill(second, signal.SIGKILL)


@pytest.mark.parametrize("command, status", [("/nonexistent/server", 127), ("exit 3", 3)])
def test_a_restart_that_fails_is_told(fault, closing, command, status):
    victim = closing(Service())
    one = fault(f"kill,pid={victim.pid},restart={command}")
    assert one.wait() == 1
    assert f"'{command}' ended at once with status {status}" in one.process.log()


def test_a_restart_in_the_background_is_none_that_failed(fault, closing):
    victim = closing(Service())
    one = fault(f"kill,pid={victim.pid},restart=sleep 0.01 & exit 0")
    assert one.wait() == 0, one.process.log()


def test_a_target_that_ended(fault, service):
    one = fault(f"pause,pid={service.pid},at=200ms,for=100ms,every=200ms", "--hold", stdin=subprocess.PIPE)
    one.wait_event("ready")
    os.kill(service.pid, signal.SIGKILL)
    service.process.wait()
    one.process.child.stdin.write(b"go\n")
    one.process.child.stdin.flush()
    assert one.wait() == 0
    assert len(one.events("gone")) == 1 and not one.events("begin")


def test_cpu_is_held_back_by_a_control_group(fault, closing):
    busy = closing(Service(BUSY))
    group = cpu_group_of(busy.pid)
    if not can_make_groups(group):
        pytest.skip("control groups can't be made here")
    one = fault(f"cpu,pid={busy.pid},quota=10%,for=60s,means=cgroup")
    assert one.wait_event("begin")["how"] == "cgroup v1"
    ours = cpu_group_of(busy.pid)
    assert ours.startswith(f"{group}/spillload-")

    def throttled():
        with open(f"{ours}/cpu.stat") as stat:
            return dict(line.split() for line in stat)["nr_throttled"] != "0"

    process.wait_until(throttled, "the kernel holds the service back")
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0
    assert cpu_group_of(busy.pid) == group and not os.path.exists(ours)


def test_cpu_is_held_back_by_a_duty_cycle(fault, closing):
    busy = closing(Service(BUSY))
    one = fault(f"cpu,pid={busy.pid},quota=20%,for=60s,means=duty")
    assert one.wait_event("begin")["how"] == "stop and continue"
    process.wait_until(lambda: busy.state() == "T", "it stands still")
    process.wait_until(lambda: busy.state() == "R", "it runs")
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0
    assert busy.goes_on()


def test_memory_streams(fault):
    one = fault("memory,threads=2,bytes=4MiB,for=50ms,every=100ms,times=3")
    assert one.wait() == 0
    assert [event["bytes"] > 0 for event in one.events("end")] == [True] * 3


def test_hold_waits_for_a_line_and_ends_with_its_end(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s", "--hold", stdin=subprocess.PIPE)
    one.wait_event("ready")
    assert not one.events("begin") and service.goes_on()
    one.process.child.stdin.write(b"go\n")
    one.process.child.stdin.flush()
    one.wait_event("begin")
    process.wait_until(lambda: service.state() == "T", "the service stands still")
    one.process.child.stdin.close()
    assert one.wait() == 0
    assert service.goes_on()


def test_the_limit(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s", "--limit=300ms")
    assert one.wait() == 0
    assert len(one.events("begin")) == 1 and "--limit" in one.process.log()
    assert service.goes_on()


# ---------------------------------------------------------------- nothing is left


@pytest.mark.parametrize("kind", ["pause", "cpu,means=duty"])
def test_the_doer_is_killed_while_it_stops(fault, closing, kind):
    busy = closing(Service(BUSY))
    name, _, more = kind.partition(",")
    one = fault(f"{name},pid={busy.pid},for=60s" + (f",{more}" if more else ""))
    one.wait_event("begin")
    keeper = one.keeper()
    process.wait_until(lambda: busy.state() == "T", "the service stands still")
    one.kill()
    process.wait_until(lambda: gone(keeper), "the keeper has done its work")
    assert busy.goes_on()
    assert one.journals() == []


@pytest.mark.parametrize("when", ["for=60s", "for=10ms,every=60s"], ids=["active", "resting"])
def test_the_doer_is_killed_with_a_control_group(fault, service, group, when):
    one = fault(f"cpu,pid={service.pid},means=cgroup,{when}")
    one.wait_event("begin" if when == "for=60s" else "end")
    keeper = one.keeper()
    ours = cpu_group_of(service.pid)
    assert ours != group
    one.kill()
    process.wait_until(lambda: gone(keeper), "the keeper has done its work")
    assert cpu_group_of(service.pid) == group and not os.path.exists(ours)
    assert one.journals() == []


def test_the_doer_is_killed_before_the_restart(fault, closing):
    victim = closing(Service())
    told = os.path.join(process.scratch(), "pid")
    one = fault(f"kill,pid={victim.pid},for=60s,restart=echo $$ >{told}.new; mv {told}.new {told}; exec sleep 1000")
    one.wait_event("begin")
    victim.process.wait()
    one.kill()
    process.wait_until(lambda: os.path.exists(told), "the keeper starts the service again")
    restarted = int(open(told).read())
    assert process_state(restarted) is not None
    os.kill(restarted, signal.SIGKILL)


def test_the_doer_is_killed_before_anything(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s", "--hold", stdin=subprocess.PIPE)
    one.wait_event("ready")
    keeper = one.keeper()
    one.kill()
    process.wait_until(lambda: gone(keeper), "the keeper has ended")
    assert one.journals() == [] and service.goes_on()


def test_the_doer_stands_still_beyond_its_limit(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s", "--limit=1s")
    one.wait_event("begin")
    keeper = one.keeper()
    os.kill(one.pid, signal.SIGSTOP)
    assert one.process.wait() == -signal.SIGKILL
    process.wait_until(lambda: gone(keeper), "the keeper has done its work")
    assert service.goes_on() and one.journals() == []


def test_the_keeper_is_killed(fault, service):
    one = fault(f"pause,pid={service.pid},for=60s")
    one.wait_event("begin")
    os.kill(one.keeper(), signal.SIGKILL)
    assert one.wait() == 1
    assert "keeper" in one.process.log()
    assert service.goes_on() and one.journals() == []


def kill_both(one):
    keeper = one.keeper()
    os.kill(one.pid, signal.SIGSTOP)  # else it would undo when it sees the keeper end
    os.kill(keeper, signal.SIGKILL)
    one.kill()
    process.wait_until(lambda: gone(keeper), "the keeper is gone")


def test_both_are_killed_and_undo_is_asked_for(fault, folder, service, group):
    one = fault(f"cpu,pid={service.pid},means=cgroup,for=60s", f"pause,pid={service.pid},at=100ms,for=60s")
    one.wait_event("begin", 2)
    ours = cpu_group_of(service.pid)
    kill_both(one)
    assert service.state() == "T" and ours != group
    assert "undone: 2" in run_fault(folder, "--undo").stdout
    assert service.goes_on()
    assert cpu_group_of(service.pid) == group and not os.path.exists(ours)
    assert one.journals() == []


def test_the_next_run_undoes_what_is_left(fault, folder, service):
    one = fault(f"pause,pid={service.pid},for=60s")
    one.wait_event("begin")
    kill_both(one)
    assert service.state() == "T"
    done = run_fault(folder, "memory,threads=1,bytes=1MiB,for=1ms")
    assert "undone what an earlier run had left: 1" in done.stderr
    assert service.goes_on()


def test_undo_leaves_faults_at_work_alone(fault, folder, service):
    one = fault(f"pause,pid={service.pid},for=60s")
    one.wait_event("begin")
    process.wait_until(lambda: service.state() == "T", "the service stands still")
    assert "left alone: 1" in run_fault(folder, "--undo").stdout
    assert service.state() == "T"
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0


# ---------------------------------------------------------------- what is refused


def test_refused_targets(folder, service):
    for pid, words in [(1, "process 1"), (os.getpid(), "spillload itself"), (2**22 - 7, "no such process")]:
        done = run_fault(folder, f"pause,pid={pid}", check=False)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    assert os.listdir(folder) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to start another user's process")
def test_other_users_need_force(folder, closing):
    other = process.Process("other", ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", IDLE])
    closing(type("Closing", (), {"close": lambda self: other.kill()})())
    process.wait_until(lambda: os.stat(f"/proc/{other.pid}").st_uid == 65534, "it is another user's")
    done = run_fault(folder, f"pause,pid={other.pid},for=1ms", check=False)
    assert done.returncode == 1 and "--force" in done.stderr
    run_fault(folder, f"pause,pid={other.pid},for=1ms", "--force")


def test_a_wrong_command_line(folder):
    for arguments in [["pause"], ["pause,pid=1,loss=1%"], ["--limit=1", "memory"], ["--undo", "memory"], [],
                      ["--journal=x", "memory"], ["memory,at=11m"], ["--limit=2s", "memory,bytes=1MiB,at=2s"]]:
        done = run_fault(folder, *arguments, check=False)
        assert done.returncode == 2 and "--help" in done.stderr, (arguments, done.stderr)


def test_a_journal_that_others_could_write(folder, service):
    os.chmod(folder, 0o777)
    done = run_fault(folder, f"pause,pid={service.pid},for=1ms", check=False)
    assert done.returncode == 1 and "0700" in done.stderr


def test_check_does_nothing(folder, service):
    done = run_fault(folder, "--check", f"pause,pid={service.pid},for=60s", f"cpu,pid={service.pid}")
    assert done.stdout.splitlines()[0] == "pause: can be done"
    assert done.stdout.splitlines()[1].startswith("cpu: can be done: ")
    assert service.goes_on()


# ---------------------------------------------------------------- the network


def test_a_kernel_without_netem_is_told_before_the_load(folder, net):
    """Or, where this machine's kernel has it, that it can be done."""
    done = run_fault(folder, "--check", f"network,namespace=/proc/{net.holder.pid}/ns/net,delay=10ms", check=False)
    if done.returncode != 0:
        assert done.returncode == 1 and "sch_netem" in done.stderr


def test_an_unknown_namespace(folder):
    done = run_fault(folder, "network,namespace=nobody-made-this,delay=10ms", check=False)
    assert done.returncode == 1 and "ip netns add" in done.stderr


# The rest is done on the kernel of user-mode Linux, whose modules have netem. Nothing is left after
# each step, which is asked of that kernel itself.
NETWORK_JOB = """
set -e
insmod {netem} 2>/dev/null || true  # an earlier job may have
export PATH=$PATH:/usr/sbin:/sbin
ip=/usr/sbin/ip; [ -x $ip ] || ip=/sbin/ip  # not that of busybox
J=/run/journal; mkdir -m 700 $J
F="{program} fault --json-events --journal=$J"
$ip netns add farm
root() {{ $ip netns exec farm tc qdisc show dev lo; }}
wait_for() {{ n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 600 ] || {{ echo NEVER "$@"; exit 9; }}; sleep 0.05; done; }}
root_is() {{ root | grep -q "$1"; }}
root_is_not() {{ ! root_is netem; }}
{steps}
$ip netns del farm
"""


def in_user_mode(net, steps):
    netem = glob.glob("/usr/lib/uml/modules/*/kernel/net/sched/sch_netem.ko")
    assert netem, "user-mode Linux (package user-mode-linux) has no module sch_netem"
    status, output = nfs.kernel_job(net, NETWORK_JOB.format(program=process.plain_program("spillload"), netem=netem[0],
                                                            steps=steps))
    assert status == 0, output
    return output


def test_netem_on_and_off(net):
    output = in_user_mode(net, """
$F network,namespace=farm,delay=10ms,jitter=2ms,loss=1%,for=60s >$J.log & doer=$!
wait_for root_is netem
echo SHOWN $(root)
kill $doer
wait $doer
root_is_not
cat $J.log
[ -z "$(ls $J)" ]
""")
    shown = next(line for line in output.splitlines() if line.startswith("SHOWN"))
    assert "delay 10ms" in shown and "2ms" in shown and "loss 1%" in shown, output
    assert '"event":"begin"' in output and '"event":"done"' in output


def test_netem_is_removed_after_a_kill(net):
    in_user_mode(net, """
$F network,namespace=farm,delay=5ms,for=60s >$J.log &
wait_for root_is netem
kill -9 $!
wait_for root_is_not
wait_for rmdir $J
""")


def test_somebody_elses_root_is_kept(net):
    output = in_user_mode(net, """
$ip netns exec farm tc qdisc add dev lo root handle 7: netem delay 1ms
if $F network,namespace=farm,delay=5ms,for=1ms 2>$J.err; then exit 8; fi
cat $J.err
root_is "netem 7:"
""")
    assert "not ours to replace" in output


def test_control_groups_of_version_2(net):
    output = in_user_mode(net, """
mkdir -p $J.two && mount -t cgroup2 none $J.two
grep -q cpu $J.two/cgroup.controllers || {{ umount $J.two; $ip netns del farm; echo NO CONTROLLER; exit 0; }}
echo +cpu >$J.two/cgroup.subtree_control
mkdir $J.two/home
(while :; do :; done) & busy=$!
echo $busy >$J.two/home/cgroup.procs
$F cpu,pid=$busy,quota=10%,for=60s,means=cgroup >$J.log & doer=$!
throttled() {{ grep -hs nr_throttled $J.two/spillload-*/cpu.stat | grep -qv " 0$"; }}
wait_for throttled
cat $J.two/spillload-*/cpu.max
kill -9 $doer
wait_for grep -q $busy $J.two/home/cgroup.procs
wait_for rmdir $J
[ -z "$(ls -d $J.two/spillload-* 2>/dev/null)" ]
cat $J.log
kill -9 $busy
rmdir $J.two/home; umount $J.two
""".replace("{{", "{").replace("}}", "}"))
    if "NO CONTROLLER" in output:
        pytest.skip("the user-mode kernel has no cpu controller of version 2 to give")
    assert "1000 10000" in output and '"how":"cgroup v2"' in output, output
