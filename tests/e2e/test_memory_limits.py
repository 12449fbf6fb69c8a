"""Limits that the kernel enforces, as a user meets them: ``--enforce-limits`` with control groups."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_disk import mounted

from torc_framework.supervision import cgroup_location

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

REQUIRED = {"TORC_EXECUTOR__LOCAL__MEMORY_CGROUP": "require"}


@pytest.fixture(scope="module", autouse=True)
def _control_groups() -> None:
    """Skip where control groups cannot be made; other tests cover the monitor's limits."""
    try:
        cgroup_location.find_parent(cgroup_location.own_cgroup())
    except cgroup_location.CgroupsUnavailable as error:
        pytest.skip(f"control groups: {error}")


def results(torc: Any, workflow_id: int = 1) -> dict[int, Any]:
    """Return the last result of each job."""
    done = torc("results", "list", workflow_id, "-f", "json")
    assert done.returncode == 0, done.stderr
    return {each["job_id"]: each for each in json.loads(done.stdout)["results"]}


HUNGRY = """
name: hungry
resource_requirements:
  - {name: small, num_cpus: 1, memory: 60m, runtime: PT5M}
jobs:
  - {name: good, command: 'true', resource_requirements: small}
  - {name: direct, command: "exec python3 -c 'x = bytearray(120 << 20)'", resource_requirements: small}
  - {name: shell, command: "python3 -c 'x = bytearray(120 << 20)' || exit 5", resource_requirements: small}
  - {name: after, command: touch done, depends_on: [direct, shell]}
"""


def test_what_the_kernel_killed_is_healed(torc: Any, work: Path) -> None:
    """More memory round after round, by the peak that the kernel saw, until it is enough."""
    (work / "spec.yaml").write_text(HUNGRY)
    first = torc("run", "spec.yaml", "--enforce-limits", env=REQUIRED)
    assert first.returncode == 1, first.stderr
    direct, shell = results(torc)[2], results(torc)[3]
    for seen in (direct, shell):
        assert (seen["exit_class"], seen["status"], seen["return_code"]) == ("oom", "failed", 137)
        assert seen["observation"]["oom_kills"] == 1
        assert seen["observation"]["memory_limit_bytes"] == 60 << 20
        assert 50 << 20 < seen["peak_memory_bytes"] < 80 << 20
        assert "stop_reason" not in seen["observation"]
    assert (direct["signal"], shell["exit_code"]) == (9, 5)
    why = torc("why-failed", "--job", 3)
    assert "exit code 5; the kernel killed a process of it at the 60 MiB of memory it asked for (oom" in why.stdout
    watched = torc("watch", "1", "--recover", "--enforce-limits", "-s", env=REQUIRED)
    assert watched.returncode == 0, watched.stderr + watched.stdout
    assert re.search(r"direct.* out of memory .* memory 60 MiB → ", watched.stdout), watched.stdout
    assert "shell" in watched.stdout
    assert "(workflow 1) completed: 4 jobs" in watched.stdout
    assert (work / "done").exists()


ENDINGS = """
name: endings
resource_requirements:
  - {name: small, num_cpus: 1, memory: 60m, runtime: PT5M}
  - {name: brief, num_cpus: 1, memory: 60m, runtime: PT1S}
jobs:
  - {name: copes, command: "python3 -c 'x = bytearray(120 << 20)' || echo less", resource_requirements: small}
  - {name: slow, command: exec sleep 60, resource_requirements: brief}
  - {name: crash, command: kill -SEGV $$, resource_requirements: small}
  - {name: word, command: exit 137, resource_requirements: small}
  - {name: killed, command: exec sleep 61, resource_requirements: small}
  - {name: ended, command: exec sleep 61, resource_requirements: small}
  - {name: stranger, command: sh stranger.sh, resource_requirements: small}
"""
STRANGER = """
for name in killed:KILL ended:TERM; do
    until pid=$(cat ${name%:*}.pid 2>/dev/null) && [ -n "$pid" ]; do sleep 0.05; done
    kill -${name#*:} $pid
done
"""


def test_other_endings_stay_what_they_are(torc: Any, work: Path) -> None:
    """A time-out, a crash, the program's own 137, and signals of a stranger are no lack of memory."""
    spec = ENDINGS.replace("{name: killed, command: exec", "{name: killed, command: echo $$ >killed.pid; exec")
    (work / "spec.yaml").write_text(
        spec.replace("command: exec sleep 61", "command: echo $$ >ended.pid; exec sleep 61")
    )
    (work / "stranger.sh").write_text(STRANGER)
    assert torc("run", "spec.yaml", "--enforce-limits", "--max-parallel-jobs", 7, env=REQUIRED).returncode == 1
    told = {number: (each["exit_class"], each["return_code"]) for number, each in results(torc).items()}
    assert told == {
        1: ("success", 0),
        2: ("timeout", 152),
        3: ("signaled", 128 + signal.SIGSEGV),
        4: ("user_error", 137),
        5: ("signaled", 128 + signal.SIGKILL),
        6: ("signaled", 128 + signal.SIGTERM),
        7: ("success", 0),
    }
    plan = json.loads(torc("recover", "1", "--dry-run", "-f", "json").stdout)
    assert [entry["job_id"] for entry in plan["recovered"]] == [2], "only the one without time gets more"


SHARES = """
import mmap, time
with open("large", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
    sum(view[at] for at in range(0, len(view), 4096))
    time.sleep(1.5)
"""


def test_pages_that_others_brought_into_memory_are_not_the_jobs(torc: Any, work: Path) -> None:
    """The kernel charges a file's pages to the first reader; the monitor cannot tell these apart and is not used."""
    (work / "large").write_bytes(os.urandom(1 << 20) * 80)
    (work / "shares.py").write_text(SHARES)
    (work / "spec.yaml").write_text(
        "name: shares\nresource_requirements: [{name: small, num_cpus: 1, memory: 60m, runtime: PT5M}]\n"
        "jobs: [{name: reads, command: exec python3 shares.py, resource_requirements: small}]\n"
    )
    done = torc("run", "spec.yaml", "--enforce-limits", env=REQUIRED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(torc)[1]["peak_memory_bytes"] > 80 << 20


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, or the device that is always full where mounting is not permitted."""
    with mounted(tmp_path / "disk", "1m") as folder:
        yield folder / "out" if folder else Path("/dev/full")


def test_a_full_disk_is_told_with_what_to_do(torc: Any, work: Path, full_disk: Path) -> None:
    """The decisive line and a hint; it does not count as lack of memory, and recovery does not change the job."""
    (work / "spec.yaml").write_text(
        "name: disk\nresource_requirements: [{name: small, num_cpus: 1, memory: 60m, runtime: PT5M}]\n"
        f"jobs: [{{name: copy, command: dd if=/dev/zero of={full_disk} bs=64k count=99, resource_requirements: small}}]"
    )
    assert torc("run", "spec.yaml", "--enforce-limits", env=REQUIRED).returncode == 1
    assert results(torc)[1]["exit_class"] == "user_error"
    why = torc("why-failed", "--job", 1)
    assert "No space left on device" in why.stdout
    assert "hint: Free space, or write to another file system." in why.stdout
    assert json.loads(torc("recover", "1", "--dry-run", "-f", "json").stdout)["recovered"] == []
