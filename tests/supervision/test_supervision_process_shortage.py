"""Without free processes, memory or room on disk, attempts wait or fail with the reason; none is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench
from small_disk import MISSING, mounted
from waiting import let_pass

from torc_framework.api import AttemptKey
from torc_framework.supervision import supervisor
from torc_framework.testing import ProcessLimit

CROWD = """
import json, select, sys
from pathlib import Path
Path(sys.argv[1], "cgroup.procs").write_text("0")
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from torc_framework.api import Attempt, AttemptEnded, AttemptKey, RunnerContext
folder, command, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
launcher = LocalLauncher(LocalOptions(), RunnerContext(1, 1, folder, str(Path.cwd()), "http://127.0.0.1:1"))
launcher.start([
    Attempt(AttemptKey(i, 1), "a", command, {}, f"{folder}/{i}.o", f"{folder}/{i}.e", str(Path.cwd()))
    for i in range(1, count + 1)
])
seen, told = {}, set()
while len(seen) < count:
    select.select([launcher.wait_fd()], [], [], 1)
    for news in launcher.poll():
        if isinstance(news, AttemptEnded):
            seen[news.key.job_id] = news.observation.launch_error or news.observation.exit_code
    told.add(launcher.hindrance)
launcher.close()
print(json.dumps([seen, sorted(filter(None, told)), launcher.hindrance]))
"""


def run(process_limit: ProcessLimit, folder: Path, command: str, count: int) -> "subprocess.Popen[str]":
    """Run attempts of a command in the group."""
    arguments = [sys.executable, "-c", CROWD, str(process_limit.folder), str(folder), command, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_attempts_wait_for_processes(process_limit: ProcessLimit, tmp_path: Path) -> None:
    """With room for five at a time, thirty attempts run, and the reason of the wait is reported."""
    process_limit.set(8)  # the launcher, the reaper and the supervisor are three of them
    process = run(process_limit, tmp_path, "exec sleep 0.05", 30)
    out, err = process.communicate(timeout=60)
    seen, told, at_last = json.loads(out)
    assert set(seen.values()) == {0}
    assert told[0].startswith("no more processes can be started (Resource temporarily unavailable): ")
    assert at_last is None
    assert err.count("event=attempts_wait") <= 2, "it is logged once, not at every try"


def test_the_process_that_runs_jobs_waits_for_its_place(process_limit: ProcessLimit, tmp_path: Path) -> None:
    """If neither reaper nor supervisor can be started, the start is tried again, without a replacement."""
    process_limit.set(1)
    process = run(process_limit, tmp_path, "exit 3", 2)
    let_pass(1.0)
    process_limit.set(2)
    let_pass(2.0)
    process_limit.set(8)
    out, err = process.communicate(timeout=60)
    seen, told, at_last = json.loads(out)
    assert seen == {"1": 3, "2": 3}
    assert [each.startswith("no more processes can be started (") for each in told] == [True]
    assert at_last is None
    assert "supervisor_replaced" not in err


def test_an_attempt_that_can_never_begin_fails_with_the_fix(
    process_limit: ProcessLimit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing runs and nothing can be started for long, the attempt has a launch failure with advice."""
    hurry = "import torc_framework.supervision.supervisor.process_shortage as shortage\nshortage.PATIENCE_S = 0.5\n"
    program = supervisor.PROGRAM.replace(
        "from torc_framework.supervision.supervisor.reaper", f"{hurry}from torc_framework.supervision.supervisor.reaper"
    )
    process_limit.set(3)
    code = CROWD.replace(
        "folder, command",
        f"from torc_framework.supervision import supervisor\nsupervisor.PROGRAM = {program!r}\nfolder, command",
    )
    monkeypatch.setattr(sys.modules[__name__], "CROWD", code)
    out, _ = run(process_limit, tmp_path, "true", 3).communicate(timeout=60)
    for reason in json.loads(out)[0].values():
        assert "Resource temporarily unavailable for" in reason
        assert "raise the limit on processes" in reason


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    with mounted(tmp_path / "disk", "256k") as folder:
        yield folder or pytest.skip(MISSING)


def fill(folder: Path) -> Path:
    """Write a file until there is no room; return it."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def test_nothing_begins_that_the_journal_does_not_know(
    small_disk: Path, make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """On a full disk an attempt has a launch failure with the reason; with free space others start."""
    bench = make_bench(folder=small_disk)
    nowhere: dict[str, Any] = {"stdout_path": os.devnull, "stderr_path": os.devnull}
    bench.run(bench.attempt("true", **nowhere))
    ballast = fill(small_disk)
    journal = next((small_disk / ".torc_runner").glob("*.journal"))
    at = 2
    while journal.stat().st_size % 4096 > 0 and at < 400:  # the rest of its last block
        bench.run(bench.attempt(f"echo {at} >>{tmp_path}/ran", job_id=at, **nowhere))
        at += 1
        if bench.ended[AttemptKey(at - 1, 1)].launch_error:
            break
    bench.run(bench.attempt(f"echo {at} >>{tmp_path}/ran", job_id=at, **nowhere))
    refused = [key.job_id for key, seen in bench.ended.items() if seen.launch_error]
    assert refused
    assert bench.ended[AttemptKey(refused[0], 1)].launch_error == (
        "the journal of running jobs cannot be written: No space left on device"
    )
    assert not set(map(str, refused)) & set((tmp_path / "ran").read_text().split())
    ballast.unlink()
    let_pass(0.2)
    (seen,) = bench.run(bench.attempt("exit 7", job_id=1000))
    assert seen.exit_code == 7
