"""Observations of attempts are exact."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench, python

from torc_framework.api import AttemptKey, ConfigError

DEADLY = sorted(
    signal.valid_signals()
    - {
        signal.SIGSTOP,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGCHLD,
        signal.SIGCONT,
        signal.SIGURG,
        signal.SIGWINCH,
    }
)
"""Signals whose default action ends a process."""


def test_every_exit_code_arrives_as_it_was(bench: Bench) -> None:
    """All of 0 to 255, with no signal beside them."""
    seen = bench.run(*[bench.attempt(f"exit {code}", job_id=code + 1) for code in range(256)])
    assert [each.exit_code for each in seen] == list(range(256))
    assert {each.signal for each in seen} == {None}


def test_every_deadly_signal_arrives_as_a_signal(bench: Bench) -> None:
    """A signal is never turned into a code, also not into 128+n. (bash itself is deaf to SIGQUIT.)"""
    commands = [(f"kill -{number} $$; sleep 100", int(number)) for number in DEADLY]
    seen = bench.run(*[bench.attempt(command, job_id=job_id, shell="sh") for command, job_id in commands])
    assert [each.signal for each in seen] == [int(number) for number in DEADLY]
    assert {each.exit_code for each in seen} == {None}


def test_times_and_usage_are_observed(bench: Bench) -> None:
    """Start, end, peak memory and CPU time come from the kernel's own accounting."""
    before = time.time()
    (seen,) = bench.run(bench.attempt(python("x = bytearray(150 << 20); sum(range(10**6))")))
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert before <= seen.started_at <= seen.ended_at <= time.time()
    assert seen.peak_memory_bytes is not None
    assert 150 << 20 < seen.peak_memory_bytes < 600 << 20
    assert seen.cpu_time_s is not None
    assert seen.cpu_time_s > 0


def test_memory_of_a_child_counts(bench: Bench) -> None:
    """The peak is that of the largest process, also when it is not the first."""
    (seen,) = bench.run(bench.attempt(python("x = bytearray(150 << 20)").removeprefix("exec ") + "; true"))
    assert seen.peak_memory_bytes is not None
    assert seen.peak_memory_bytes > 150 << 20


def test_memory_of_the_parent_is_not_the_jobs(bench: Bench) -> None:
    """What the kernel counted before the exec is told as a bound, not as a peak; a larger job has its own."""
    small, large = bench.run(bench.attempt("true"), bench.attempt(python("x = bytearray(30 << 20)"), job_id=2))
    assert small.peak_memory_bytes is None
    assert 1 << 20 < small.raw["peak_memory_below_bytes"] < 30 << 20
    assert large.peak_memory_bytes is not None
    assert large.peak_memory_bytes > 30 << 20
    assert not large.raw


def test_processes_of_running_attempts_are_known(bench: Bench) -> None:
    """Each has its first process while it runs; ended and unknown ones have none."""
    bench.launcher.start([bench.attempt("echo $$; exec sleep 100"), bench.attempt("true", job_id=2)])
    pid = int(bench.wait_for_file("1.o"))
    keys = [AttemptKey(1, 1), AttemptKey(2, 1), AttemptKey(3, 1)]
    bench.until(lambda: keys[0] in bench.started and keys[1] in bench.ended)
    assert bench.launcher.processes(keys) == {keys[0]: [pid]}
    bench.launcher.stop(keys, force=True)
    bench.until(lambda: len(bench.ended) == 2)
    assert bench.launcher.processes(keys) == {}


def test_output_goes_to_the_two_files(bench: Bench) -> None:
    """Standard output and error are kept apart and may be large."""
    bench.run(bench.attempt("echo out; echo err >&2; head -c 20000000 /dev/zero"))
    assert (bench.folder / "1.o").stat().st_size == 20_000_004
    assert bench.text("1.e") == "err\n"


def test_output_can_be_read_while_the_attempt_runs(bench: Bench) -> None:
    """The log is at its path from the beginning."""
    bench.launcher.start([bench.attempt("echo early; sleep 100")])
    assert bench.wait_for_file("1.o") == "early"
    bench.launcher.stop([AttemptKey(1, 1)], force=True)
    bench.until(lambda: bench.ended)


def test_silent_attempts_have_empty_files(bench: Bench) -> None:
    """Every attempt has both files, with its own output and no other."""
    attempts = [bench.attempt("echo $TORC_JOB_ID" if i % 7 == 0 else "true", job_id=i) for i in range(1, 60)]
    for attempt in attempts:
        bench.run(attempt)
    for i in range(1, 60):
        assert bench.text(f"{i}.o") == (f"{i}\n" if i % 7 == 0 else "")
        assert bench.text(f"{i}.e") == ""


def test_a_child_left_behind_keeps_the_log(bench: Bench) -> None:
    """Its output does not turn up in the log of a later attempt."""
    (seen,) = bench.run(bench.attempt(f"(while ! [ -e {bench.folder}/go ]; do sleep 0.01; done; echo late) &"))
    assert seen.exit_code == 0
    bench.run(*[bench.attempt("true", job_id=i) for i in range(2, 9)])
    (bench.folder / "go").touch()
    bench.until(lambda: bench.text("1.o") == "late\n")
    assert {bench.text(f"{i}.o") for i in range(2, 9)} == {""}


def test_a_process_that_left_its_group_keeps_the_log(bench: Bench) -> None:
    """A daemon in a session of its own writes to the log of the attempt that began it, and to no other."""
    wait = f"while ! [ -e {bench.folder}/go ]; do sleep 0.01; done"
    bench.run(bench.attempt(f"setsid sh -c '{wait}; echo FROM_A; echo ERR_A >&2' & sleep 0.05"))
    for i in range(2, 9):
        bench.run(bench.attempt("true", job_id=i))
    (bench.folder / "go").touch()
    bench.until(lambda: bench.text("1.o") == "FROM_A\n" and bench.text("1.e") == "ERR_A\n")
    assert {bench.text(f"{i}.{kind}") for i in range(2, 9) for kind in "oe"} == {""}


def test_every_log_is_a_file_of_its_own(bench: Bench) -> None:
    """What is appended to the empty log of an ended attempt shows in that log alone."""
    for i in range(1, 9):
        bench.run(bench.attempt("true", job_id=i))
    paths = [bench.folder / f"{i}.{kind}" for i in range(1, 9) for kind in "oe"]
    assert len({path.stat().st_ino for path in paths}) == len(paths)
    assert {path.stat().st_nlink for path in paths} == {1}


def test_a_repeated_attempt_gets_new_logs(make_bench: Callable[..., Bench]) -> None:
    """A process that the earlier attempt of the same numbers left behind does not write to them."""
    first, second = make_bench(), make_bench()
    wait = f"while ! [ -e {first.folder}/go ]; do sleep 0.01; done"
    first.run(first.attempt(f"echo first; setsid sh -c '{wait}; echo late; echo x >{first.folder}/over' & true"))
    second.run(second.attempt("echo again"))
    (first.folder / "go").touch()
    first.wait_for_file("over")
    assert second.text("1.o") == "again\n"


def test_only_one_of_the_two_logs_may_be_there(bench: Bench) -> None:
    """A file that has the name of the other one is replaced as well."""
    (bench.folder / "1.e").write_text("of another database\n")
    (seen,) = bench.run(bench.attempt("echo out; echo err >&2"))
    assert seen.exit_code == 0
    assert (bench.text("1.o"), bench.text("1.e")) == ("out\n", "err\n")


def test_a_removed_folder_of_logs_is_made_again(bench: Bench) -> None:
    """An attempt that removes it costs those that come after nothing."""
    logs = bench.folder / "deep" / "logs"
    logs.mkdir(parents=True)
    paths: list[dict[str, Any]] = [
        {"stdout_path": str(logs / f"{i}.o"), "stderr_path": str(logs / f"{i}.e")} for i in range(3)
    ]
    bench.run(bench.attempt(f"rm -rf {bench.folder}/deep", **paths[1]))
    (seen,) = bench.run(bench.attempt("echo here", job_id=2, **paths[2]))
    assert seen.exit_code == 0
    assert (logs / "2.o").read_text() == "here\n"


def test_a_log_that_cannot_be_made_is_named(bench: Bench) -> None:
    """The launch error names what is in the way: a file where the folder was, or a folder where the log goes."""
    (bench.folder / "file").write_text("")
    (bench.folder / "2.e").mkdir()
    first, second = bench.run(
        bench.attempt("true", stdout_path=str(bench.folder / "file" / "1.o")), bench.attempt("true", job_id=2)
    )
    assert first.launch_error is not None
    assert str(bench.folder / "file") in first.launch_error
    assert second.launch_error is not None
    assert str(bench.folder / "2.e") in second.launch_error


def test_logs_may_be_deleted_meanwhile(bench: Bench) -> None:
    """A removed log does not affect a later attempt."""
    for i in range(1, 12):
        bench.run(bench.attempt("true", job_id=i))
        (bench.folder / f"{i}.o").unlink()
    bench.run(bench.attempt("echo here", job_id=12))
    assert bench.text("12.o") == "here\n"


def test_combined_output_goes_to_one_file(make_bench: Callable[..., Bench]) -> None:
    """The order of the lines is kept, and the file is a new one."""
    bench = make_bench()
    bench.folder.joinpath("1.o").write_text("of an attempt before a reset\n")
    bench.run(bench.attempt("echo one; echo two >&2; echo three", stderr_path=str(bench.folder / "1.o")))
    assert bench.text("1.o") == "one\ntwo\nthree\n"
    assert not (bench.folder / "1.e").exists()


def test_no_output_leaves_no_files(make_bench: Callable[..., Bench]) -> None:
    """Output to the null device is written nowhere, and the null device stays."""
    bench = make_bench()
    nowhere: dict[str, Any] = {"stdout_path": os.devnull, "stderr_path": os.devnull}
    (seen,) = bench.run(bench.attempt("echo one; echo two >&2", **nowhere))
    assert seen.exit_code == 0
    assert not (bench.folder / "1.o").exists()
    assert Path(os.devnull).is_char_device()


def test_one_of_two_streams_may_be_kept(make_bench: Callable[..., Bench]) -> None:
    """The stream whose path is a file is complete; the other one leaves nothing."""
    bench = make_bench()
    bench.run(bench.attempt("echo one; echo two >&2", stdout_path=os.devnull))
    bench.run(bench.attempt("echo one; echo two >&2", job_id=2, stderr_path=os.devnull))
    assert (bench.text("1.e"), bench.text("2.o")) == ("two\n", "one\n")
    assert not (bench.folder / "1.o").exists()
    assert not (bench.folder / "2.e").exists()


@pytest.mark.parametrize(("option", "value"), [("memory_cgroup", "both"), ("shell", "/no/such/shell")])
def test_wrong_options_are_refused(make_bench: Callable[..., Bench], option: str, value: str) -> None:
    """The message names the option and the value."""
    with pytest.raises(ConfigError, match=f"{option}.*{value}"):
        make_bench(**{option: value})


def test_another_shell_may_be_used(make_bench: Callable[..., Bench]) -> None:
    """The option ``shell`` names the program that gets ``-c``."""
    bench = make_bench(shell="/bin/bash")
    bench.run(bench.attempt("echo ${BASH_VERSION:+bash}"))
    assert bench.text("1.o") == "bash\n"


def test_environment_is_the_runners_and_the_attempts(bench: Bench) -> None:
    """What is set for the attempt wins over what is inherited."""
    environment = {"TORC_JOB_NAME": "späß mit $HOME", "HOME": "/elsewhere"}
    bench.run(bench.attempt('echo "$TORC_JOB_NAME|$HOME|$PATH"', environment=environment))
    assert bench.text("1.o") == f"späß mit $HOME|/elsewhere|{os.environ['PATH']}\n"


def test_input_is_empty(bench: Bench) -> None:
    """An attempt that reads from its standard input ends at once."""
    (seen,) = bench.run(bench.attempt("cat"))
    assert seen.exit_code == 0


def test_runs_in_its_working_directory(bench: Bench, tmp_path: Path) -> None:
    """Also when the folder's name needs quoting."""
    folder = tmp_path / "a folder's $name"
    folder.mkdir()
    bench.run(bench.attempt("pwd", working_dir=str(folder)))
    assert bench.text("1.o") == f"{folder}\n"


def test_missing_working_directory_is_a_launch_error(bench: Bench) -> None:
    """The launch error names the folder; there is neither code nor signal."""
    (seen,) = bench.run(bench.attempt("true", working_dir="/no/such/folder"))
    assert seen.launch_error is not None
    assert "/no/such/folder" in seen.launch_error
    assert seen.exit_code is seen.signal is None


def test_unwritable_log_is_a_launch_error(bench: Bench) -> None:
    """The attempt is not run without its log."""
    (seen,) = bench.run(bench.attempt(f"touch {bench.folder}/ran", stdout_path="/proc/no/such/1.o"))
    assert seen.launch_error is not None
    assert not (bench.folder / "ran").exists()


def test_too_large_an_environment_is_a_launch_error(bench: Bench) -> None:
    """The kernel refuses single strings above 128 KiB."""
    (seen,) = bench.run(bench.attempt("true", environment={"BIG": "x" * 200_000}))
    assert seen.launch_error is not None
    assert "too long" in seen.launch_error


@pytest.mark.parametrize(
    ("command", "environment"), [("echo \0", {}), ("true", {"A": "\0"}), ("true", {"A=B": "c"}), ("true", {"": "c"})]
)
def test_what_no_process_can_get_is_a_launch_error(bench: Bench, command: str, environment: dict[str, str]) -> None:
    """Null bytes and impossible names stop one attempt, not the launcher."""
    first, second = bench.run(
        bench.attempt(command, environment=environment), bench.attempt("exit 3", job_id=2, environment={})
    )
    assert first.launch_error is not None
    assert second.exit_code == 3


@pytest.mark.parametrize("size", [100_000, 131_000, 131_072, 3_000_000])
def test_long_commands_run(bench: Bench, size: int) -> None:
    """A command may be longer than the kernel takes as an argument; nothing is left behind."""
    filler = "x" * (size - 40)
    (seen,) = bench.run(bench.attempt(f"true {filler}; echo $TORC_JOB_ID; exit 7"))
    assert seen.exit_code == 7
    assert bench.text("1.o") == "1\n"
    assert not list(bench.folder.rglob("*.sh"))


def test_an_attempt_leads_its_own_session(bench: Bench) -> None:
    """Neither the terminal's signals nor the runner's reach it."""
    bench.run(bench.attempt(python("import os; print(os.getsid(0) == os.getpgrp() == os.getpid())")))
    assert bench.text("1.o") == "True\n"


def test_an_attempt_inherits_no_descriptors(bench: Bench) -> None:
    """Only the three standard ones, and the one that reads the listing."""
    bench.run(bench.attempt("ls /proc/self/fd"))
    assert bench.text("1.o").split() == ["0", "1", "2", "3"]


def test_background_children_are_left_alone(bench: Bench) -> None:
    """An attempt that ends by itself may leave a process behind."""
    (seen,) = bench.run(bench.attempt(f"sleep 100 & echo $! > {bench.folder}/pid; exit 5"))
    assert seen.exit_code == 5
    pid = int(bench.text("pid"))
    os.kill(pid, signal.SIGKILL)


def test_resource_limits_are_inherited(bench: Bench) -> None:
    """Limits of the runner hold for its jobs."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    bench.run(bench.attempt("ulimit -n"))
    assert bench.text("1.o") == f"{soft}\n"


IGNORANT = """
import select, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM})
from pathlib import Path
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from torc_framework.api import Attempt, AttemptEnded, AttemptKey, RunnerContext
folder = sys.argv[1]
launcher = LocalLauncher(LocalOptions(), RunnerContext(1, 1, folder, str(Path.cwd()), "http://127.0.0.1:1"))
command = "grep -E ^Sig[BI] /proc/self/status"
launcher.start([Attempt(AttemptKey(1, 1), "a", command, {}, folder + "/1.o", folder + "/1.e", str(Path.cwd()))])
while not any(isinstance(news, AttemptEnded) for news in launcher.poll()):
    select.select([launcher.wait_fd()], [], [], 1)
launcher.close()
"""


def test_signals_are_at_their_defaults(tmp_path: Path) -> None:
    """An attempt ignores and blocks no signals, even if its runner does."""
    subprocess.run([sys.executable, "-c", IGNORANT, str(tmp_path)], check=True, timeout=60)
    lines = (tmp_path / "1.o").read_text().splitlines()
    own_of_libc = 0b11 << 31  # 32 and 33: the C library keeps them for its threads
    assert {line.split()[0]: int(line.split()[1], 16) & ~own_of_libc for line in lines} == {"SigBlk:": 0, "SigIgn:": 0}


def test_many_attempts_at_once(bench: Bench) -> None:
    """Three hundred at the same time, each with its own end."""
    seen = bench.run(*[bench.attempt(f"sleep 0.{i % 3}; exit {i % 7}", job_id=i + 1) for i in range(300)])
    assert [each.exit_code for each in seen] == [i % 7 for i in range(300)]
