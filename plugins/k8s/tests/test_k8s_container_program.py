"""The program of a pod's container, under each shell that images have."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from container_programs import POD, ContainerProgram, shells
from torc_k8s.container import ContainerJob
from waiting import eventually, let_pass

_INT = signal.SIGINT
SHELLS = shells()


@pytest.fixture(params=["dash", "bash", "busybox"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> ContainerProgram:
    """The program under one of the shells."""
    if request.param not in SHELLS:
        pytest.skip(f"no {request.param} on this machine")
    return ContainerProgram(tmp_path / "container", SHELLS[request.param])


@pytest.mark.parametrize(
    ("command", "code", "number"),
    [
        ("true", 0, None),
        ("exit 7", 7, None),
        ("exit 137", 137, None),
        ("exit 143", 143, None),
        ("exit 255", 255, None),
        ("no-such-program 2>/dev/null", 127, None),
        ("kill -KILL $$", None, 9),
        ("kill -TERM $$", None, 15),
        ("kill -HUP $$", None, 1),
        ("ulimit -c 0; kill -SEGV $$", None, 11),
        ("kill -ABRT $$", None, 6),
        ("kill -USR1 $$", None, 10),
        ("sh -c 'kill -9 $$' 2>/dev/null; exit 137", 137, None),
        ("kill -KILL 0", None, 9),
    ],
)
def test_a_signal_is_not_an_exit_code(
    program: ContainerProgram, command: str, code: int | None, number: int | None
) -> None:
    ran = program.run(ContainerJob(command))
    assert (ran.end.exit_code, ran.end.signal) == (code, number)
    assert ran.status == (code if number is None else 128 + number)
    assert ran.stdout == b""


def test_streams_arrive_apart_and_byte_for_byte(program: ContainerProgram, tmp_path: Path) -> None:
    every = bytes(range(256)) * 300 + b"\r\n\x1e\n\x01\r\n" * 3000 + f"\n@{POD} o 0 5 t\nhello\n".encode() + b"no end"
    (tmp_path / "data").write_bytes(every)
    command = f"cat {tmp_path / 'data'}; cat {tmp_path / 'data'} >&2"
    ran = program.run(ContainerJob(command, log_wait_s=0))
    assert ran.end.stdout_bytes == ran.end.stderr_bytes == len(every)
    assert (program.folder / "o").read_bytes() == (program.folder / "e").read_bytes() == every


@pytest.mark.parametrize(
    ("streams", "stdout", "stderr"),
    [
        ({"joins_streams": True}, b"one\ntwo\nthree\n", b""),
        ({"keeps_stderr": False}, b"one\nthree\n", b""),
        ({"keeps_stdout": False}, b"", b"two\n"),
        ({"keeps_stdout": False, "keeps_stderr": False, "joins_streams": True}, b"", b""),
    ],
)
def test_streams_are_joined_or_dropped(
    program: ContainerProgram, streams: dict[str, bool], stdout: bytes, stderr: bytes
) -> None:
    """Joined streams keep the order of writing; of a dropped one nothing is in the log of the container."""
    ran = program.run(ContainerJob("echo one; echo two >&2; echo three; exit 7", **streams))  # type: ignore[arg-type] # all values are truth values of fields
    assert (ran.stdout, ran.stderr, ran.end.exit_code) == (stdout, stderr, 7)
    assert (ran.end.stdout_bytes, ran.end.stderr_bytes) == (len(stdout), len(stderr))


@pytest.mark.parametrize("size", [1, 40_000, 300_000])
def test_commands_of_all_sizes_and_characters(program: ContainerProgram, size: int) -> None:
    text = "'\"$$ $(X) `a` \\ \né€\t"
    filler = "x" * size
    ran = program.run(ContainerJob(f"cat <<'END'\n{text}\nEND\n# {filler}\nexit 5"))
    assert ran.stdout.decode() == f"{text}\n"
    assert ran.end.exit_code == 5


def test_the_environment_of_the_job_is_that_of_the_container(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("env", shell="sh"), {"t_x": "1", "LC_ALL": "C.UTF-8", "TORC_JOB_ID": "7"})
    lines = ran.stdout.decode().splitlines()
    assert {"t_x=1", "LC_ALL=C.UTF-8", "TORC_JOB_ID=7"} <= set(lines)
    assert not [line for line in lines if line.startswith("torc_")]


def test_a_job_begins_without_ignored_signals_and_in_a_group_of_its_own(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("exec grep -E 'SigIgn|NSpgid|NSpid' /proc/self/status"))
    values = dict(line.split(":\t") for line in ran.stdout.decode().splitlines())
    assert values["NSpgid"] == values["NSpid"]
    if program.shell[-1] != "sh":  # busybox as the only tool leaves SIGINT and SIGQUIT ignored
        assert int(values["SigIgn"], 16) == 0


def test_the_shell_of_the_job(program: ContainerProgram) -> None:
    assert program.run(ContainerJob("false; echo no", shell="sh -e")).end.exit_code == 1


def test_a_shell_that_is_missing(program: ContainerProgram) -> None:
    assert "no such shell" in program.run(ContainerJob("true", shell="no-such-shell -e")).end.launch_error


def test_a_working_folder_that_is_missing(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("true", working_dir="/no/such folder"))
    assert "no such working folder" in ran.end.launch_error
    assert ran.status == 126


def test_outputs_are_looked_for_in_the_working_folder(program: ContainerProgram, tmp_path: Path) -> None:
    folder = tmp_path / "work folder"
    folder.mkdir()
    (folder / "old").touch()
    os.utime(folder / "old", (1, 1))
    named = ContainerJob("touch new", outputs=("new", "old"), working_dir=str(folder))
    ran = program.run(named)
    assert (ran.end.missing_outputs, ran.end.outputs_written) == ((), False)


def test_missing_outputs_are_named_within_the_size_of_the_message(program: ContainerProgram) -> None:
    paths = tuple(f'no/such/file "é" {place} {"x" * 90}' for place in range(200))
    end = program.run(ContainerJob("true", outputs=paths)).end
    assert end.missing_outputs == paths[: len(end.missing_outputs)]
    assert 10 < len(end.missing_outputs) < end.missing_count == 200


@pytest.mark.parametrize(
    "name", ["back\\slash", "back\\nslash", "new\nline", "tab\t", "\\", '"quote"', "$(x)`y`'z'", "%s%d"]
)
def test_a_missing_output_has_its_own_name(program: ContainerProgram, name: str) -> None:
    assert program.run(ContainerJob("true", outputs=(name,))).end.missing_outputs == (name,)


def test_all_outputs_written(program: ContainerProgram, tmp_path: Path) -> None:
    path = str(tmp_path / "result")
    assert program.run(ContainerJob(f"echo x >'{path}'", outputs=(path,))).end.outputs_written


def test_the_run_time_limit(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("sleep 60", limit_s=0.3, headroom_s=30))
    assert (ran.end.signal, ran.end.limit_reached, ran.end.limit_forced) == (15, True, False)


def test_the_run_time_limit_of_a_job_that_ignores_sigterm(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("trap '' TERM; while :; do sleep 0.1; done", limit_s=0.3, headroom_s=0.3))
    assert (ran.end.signal, ran.end.limit_reached, ran.end.limit_forced) == (9, True, True)


def test_the_run_time_limit_of_a_job_without_a_gentle_stop(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("sleep 60", limit_s=0.3, headroom_s=0))
    assert (ran.end.signal, ran.end.limit_reached, ran.end.limit_forced) == (9, True, True)


def test_sigterm_reaches_the_job_and_the_program_goes_on_waiting(program: ContainerProgram) -> None:
    command = "trap 'sleep 0.3; echo ended; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
    program.start(ContainerJob(command))
    program.wait_for(b"begun\n")
    program.process.send_signal(signal.SIGTERM)
    ran = program.finish()
    assert (ran.end.exit_code, ran.end.was_terminated, ran.stdout) == (7, True, b"begun\nended\n")


def test_the_runner_has_the_job_terminated(program: ContainerProgram) -> None:
    command = "trap 'sleep 0.3; echo ended; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
    program.start(ContainerJob(command))
    program.wait_for(b"begun\n")
    program.annotate("stop", "TERM")
    ran = program.finish()
    assert (ran.end.exit_code, ran.end.was_terminated, ran.stdout) == (7, True, b"begun\nended\n")


def test_a_job_that_ignores_the_runner_goes_on(program: ContainerProgram) -> None:
    command = f"trap 'echo seen' TERM; echo begun; while [ ! -e {program.folder}/gate ]; do sleep 0.05; done; exit 3"
    program.start(ContainerJob(command))
    program.wait_for(b"begun\n")
    program.annotate("stop", "TERM")
    program.wait_for(b"seen\n")
    (program.folder / "gate").touch()
    ran = program.finish()
    assert (ran.end.exit_code, ran.stdout) == (3, b"begun\nseen\n")


COUNTER = """
import os, signal, sys
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("begun", flush=True)
while not os.path.exists(sys.argv[1]):
    if signal.sigtimedwait({signal.SIGTERM}, 0.005):
        print("seen", flush=True)
"""
"""A job that prints a line for each SIGTERM that is delivered to it; a shell's trap may hide one or add one."""


@pytest.mark.parametrize("way", ["annotation", "signal"])
def test_a_stop_is_one_signal(program: ContainerProgram, tmp_path: Path, way: str) -> None:
    """Many jobs quit at the second one.

    Two signals are one for a process that has not run in between. So the program has the job's core and the lowest
    priority (sched(7), SCHED_IDLE): in about half of the stops the job then takes a signal before the next one is sent.
    """
    (tmp_path / "counter.py").write_text(COUNTER)
    core = str(min(os.sched_getaffinity(0)))
    for number in range(6):
        one = ContainerProgram(tmp_path / str(number), ["taskset", "-c", core, "chrt", "-i", "0", *program.shell])
        one.start(ContainerJob(f"exec {sys.executable} {tmp_path}/counter.py {one.folder}/gate"))
        one.wait_for(b"begun\n")
        if way == "annotation":
            one.annotate("stop", "TERM")
        else:
            one.process.send_signal(signal.SIGTERM)
        one.wait_for(b"seen\n")
        let_pass(0.2)
        (one.folder / "gate").touch()
        assert one.finish().stdout == b"begun\nseen\n"


def test_a_job_that_signals_its_own_group_stops_nothing_else(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("trap 'exit 4' TERM; kill -TERM 0; sleep 5"))
    assert (ran.end.exit_code, ran.end.was_terminated) == (4, False)


def test_sigterm_before_the_members_are_known(program: ContainerProgram) -> None:
    program.start(ContainerJob("echo never", waits_for_go=True))
    program.wait_for(b"start")
    program.process.send_signal(signal.SIGTERM)
    ran = program.finish()
    assert (ran.end.signal, ran.end.was_terminated, ran.stdout) == (15, True, b"")


def test_a_stop_before_the_members_are_known(program: ContainerProgram) -> None:
    program.start(ContainerJob("echo never", waits_for_go=True))
    program.wait_for(b"start")
    program.annotate("stop", "TERM")
    ran = program.finish()
    assert (ran.end.signal, ran.stdout) == (15, b"")


def test_a_member_of_a_group_begins_with_the_addresses(program: ContainerProgram) -> None:
    program.start(ContainerJob("env | grep -E '^TORC_(MEMBER|LEAD)' | sort", waits_for_go=True, rank=1))
    program.annotate("go", "10.0.0.1,10.0.0.2,10.0.0.3")
    assert program.finish().stdout.decode().split() == [
        "TORC_LEAD_HOST=10.0.0.1",
        "TORC_MEMBER_COUNT=3",
        "TORC_MEMBER_HOSTS=10.0.0.1,10.0.0.2,10.0.0.3",
        "TORC_MEMBER_RANK=1",
    ]


def test_the_first_process_is_the_job(program: ContainerProgram) -> None:
    ran = program.run(ContainerJob("echo first; (sleep 20; echo late) & exit 3"))
    assert (ran.end.exit_code, ran.stdout) == (3, b"first\n")


def test_output_is_copied_while_the_job_runs(program: ContainerProgram, tmp_path: Path) -> None:
    program.start(ContainerJob(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo two >&2"))
    program.wait_for(b"one\n")
    (tmp_path / "go").touch()
    ran = program.finish()
    assert (ran.stdout, ran.stderr) == (b"one\n", b"two\n")


def test_output_that_was_cut_or_removed(program: ContainerProgram) -> None:
    files = program.folder
    command = f"echo 12345; sleep 0.6; : >{files}/o; echo 678; rm {files}/e; sleep 0.6; echo 9"
    assert program.run(ContainerJob(command)).stdout == b"12345\n678\n9\n"


def test_the_program_outlives_its_copying_process(program: ContainerProgram) -> None:
    program.start(ContainerJob("echo one; sleep 1.5; echo two"))
    program.wait_for(b"one\n")
    shell = subprocess.run(["pgrep", "-P", str(program.process.pid)], capture_output=True, text=True, check=True)
    copier = shell.stdout.split()[-1]
    os.kill(int(copier), signal.SIGKILL)
    assert program.finish().stdout == b"one\ntwo\n"


def test_a_large_log_waits_for_its_reader(program: ContainerProgram) -> None:
    program.start(ContainerJob("head -c 5000000 /dev/zero", log_wait_s=60))
    program.wait_for(b" o 3932160 262144 n\n")
    let_pass(0.3)
    assert program.log.stat().st_size < 4_300_000  # it is not further ahead than its window
    assert program.process.poll() is None
    program.annotate("log", "0 4000000 0 t")
    program.wait_for(b"end 5000000 0 1\n")
    assert program.process.poll() is None
    program.annotate("log", "0 5000000 0 t")
    assert program.finish().stdout == bytes(5_000_000)


def test_a_large_log_without_a_reader(program: ContainerProgram) -> None:
    program.start(ContainerJob("head -c 300000 /dev/zero", log_wait_s=0.3))
    assert program.finish().stdout == bytes(300_000)


def test_a_request_to_repeat(program: ContainerProgram, tmp_path: Path) -> None:
    program.start(ContainerJob(f"printf 'a\\r\\nb'; until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
    program.wait_for(b" o 0 4 t\n")
    program.annotate("log", "17 1 0 x")
    eventually(lambda: b" o 1 3 x\n 0d 0a 62\n.\n" in program.log.read_bytes(), program.log.read_bytes)
    (tmp_path / "go").touch()
    assert program.finish().end.exit_code == 0


def test_a_malformed_answer_changes_nothing(program: ContainerProgram, tmp_path: Path) -> None:
    program.start(ContainerJob(f"echo x; until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
    program.annotate("log", "$(touch /tmp/no) -5 a*b ; x")
    program.wait_for(b" o 0 2 t\n")
    (tmp_path / "go").touch()
    assert program.finish().stdout == b"x\n"
