"""``torc recover`` and ``torc watch`` on this machine: jobs that lack something get it and run again."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

DEADLINE_S = 60.0
STORY = """
name: story
resource_requirements:
  - {name: small, num_cpus: 1, memory: 60m, runtime: PT5M}
  - {name: brief, num_cpus: 1, memory: 60m, runtime: PT1S}
jobs:
  - {name: good, command: 'true', resource_requirements: small}
  - name: big
    command: python3 -c "import os, time; x = bytearray(90 << 20); time.sleep(0 if os.path.exists('again') else 60)"
    resource_requirements: small
  - {name: slow, command: 'test -e again || exec sleep 60', resource_requirements: brief}
  - {name: after, command: touch done, depends_on: [big, slow]}
"""
CODES = """
name: codes
resource_requirements: [{name: mine, num_cpus: 1, memory: 1g, runtime: PT10M}]
jobs:
  - {name: hungry, command: exit 137, resource_requirements: mine}
  - {name: well, command: 'true', resource_requirements: mine}
"""
BUG = """
name: bug
jobs:
  - {name: bug, command: test -e fixed}
  - {name: after, command: 'true', depends_on: [bug]}
"""


def made(torc: Any, work: Path, spec: str, *command: str, code: int = 1) -> None:
    """Create or run a workflow; its id is 1."""
    (work / "spec.yaml").write_text(spec)
    done = torc(*(command or ("run",)), "spec.yaml")
    assert done.returncode == code, done.stderr


def document(torc: Any, *arguments: Any, code: int = 0) -> Any:
    """Return what a command prints as JSON."""
    done = torc(*arguments, "-f", "json")
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def state(torc: Any) -> Any:
    """Return all that a recovery may change."""
    exported = json.loads(torc("workflows", "export", 1, "--include-results", "--include-events").stdout)
    return {name: value for name, value in exported.items() if name != "exported_at"}


def test_the_story_of_memory_and_time(torc: Any, work: Path) -> None:
    """Jobs that the monitor finds above their limits are killed and get more; requirements of others do not change."""
    made(torc, work, STORY, "workflows", "create", code=0)
    (work / "hook.sh").write_text("touch again")  # has nothing to do: both failures are understood
    by_monitor = {"TORC_EXECUTOR__LOCAL__MEMORY_CGROUP": "off"}
    first = torc("run", "1", "--enforce-limits", env=by_monitor)
    assert first.returncode == 1, first.stderr
    results = {each["job_id"]: each for each in document(torc, "results", "list", 1)["results"]}
    big, slow = results[2], results[3]
    assert (big["exit_class"], big["return_code"], big["observation"]["stop_reason"]) == ("oom", 137, "memory_limit")
    assert big["peak_memory_bytes"] > big["observation"]["memory_limit_bytes"] == 60 << 20
    assert (slow["exit_class"], slow["return_code"], slow["status"]) == ("timeout", 152, "terminated")
    (work / "again").touch()
    watched = torc("watch", "1", "--recover", "--enforce-limits", "--recovery-hook", "sh hook.sh", "-s", env=by_monitor)
    assert watched.returncode == 0, watched.stderr + watched.stdout
    for line in (
        "Attempting automatic recovery (attempt 1/3)",
        " (workflow 1): 2 failed jobs",
        "  big   out of memory (used ",
        "  memory 60 MiB → ",
        "  runtime 1 s → 1 min",
        "Recovered 2 jobs: they are ready to run again, and 1 job after them.",
        "Recovery initiated. Resuming monitoring...",
        " (workflow 1) completed: 4 jobs",
    ):
        assert line in watched.stdout
    assert (work / "done").exists()
    log = work / "output" / f"watch_{os.uname().nodename}_1.log"
    assert [line.partition(" ")[2] for line in log.read_text().splitlines()] == watched.stdout.splitlines()
    records = document(torc, "resource-requirements", "list", 1)
    requirements = {each["id"]: each for each in records["resource_requirements"]}
    jobs = {
        job["name"]: requirements[job["resource_requirements_id"]] for job in document(torc, "jobs", "list", 1)["jobs"]
    }
    assert (jobs["good"]["name"], jobs["good"]["memory"], jobs["good"]["runtime"]) == ("small", "60m", "PT5M")
    assert jobs["big"]["name"] == "small_recovered_r2"
    assert jobs["big"]["runtime"] == "PT5M"
    assert (jobs["slow"]["name"], jobs["slow"]["runtime"], jobs["slow"]["memory"]) == ("brief", "PT1M", "60m")
    entries = document(torc, "recoveries", "list", 1)["recoveries"]
    seen = [(each["job_id"], each["exit_class"], each["decided_by"], each["new_status"]) for each in entries]
    assert seen == [(2, "oom", "oom", "completed"), (3, "timeout", "oom", "completed")]
    (slow,) = document(torc, "recoveries", "list", 1, "--job", 3)["recoveries"]
    assert (slow["run_id"], slow["attempt_id"], slow["new_run_id"], slow["new_attempt_id"]) == (1, 1, 2, 1)
    table = torc("recoveries", "list", 1).stdout
    assert "memory 60m -> " in table
    assert "runtime PT1S -> PT1M" in table
    assert "No recoveries of workflow 1 found." in torc("recoveries", "list", 1, "-j", 1).stdout


def test_a_dry_run_shows_all_and_changes_nothing(torc: Any, work: Path) -> None:
    """Its output equals what a recovery then does, all numbers included."""
    made(torc, work, CODES)
    before = state(torc)
    shown = document(torc, "recover", "1", "--dry-run")
    assert state(torc) == before
    done = document(torc, "recover", "1")
    assert (shown.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert (shown.pop("next_command"), done.pop("next_command")) == ("torc recover 1", "torc run 1")
    for entry in (*shown["recovered"], *done["recovered"]):
        del entry["recovered_at"]
    assert shown == done
    (entry,) = done["recovered"]
    assert (entry["old_memory"], entry["new_memory"], entry["decided_by"]) == ("1g", "1536m", "oom")
    assert (done["oom_fixed"], done["reset_count"], done["jobs"][0]["evidence"]) == (
        1,
        1,
        ["sigkill_137: killed long before its run time was over"],
    )


def test_two_recoveries_in_a_row(torc: Any, work: Path) -> None:
    """Each begins where the last ended; the second is refused until the first has run."""
    made(torc, work, CODES)
    for memory in ("1536m", "2304m"):
        assert document(torc, "recover", "1")["recovered"][0]["new_memory"] == memory
        refused = torc("recover", "1")
        assert refused.returncode == 1
        assert "it is not complete, 1 job(s) can still run. 'torc run 1' goes on" in refused.stderr
        assert torc("run", "1").returncode == 1
    assert document(torc, "recover", "1", "--dry-run")["jobs"][0]["recoveries"] == 2


def test_unknown_failures_are_left_unless_asked_for(torc: Any, work: Path) -> None:
    """A bug stays; with --retry-unknown it runs again as it is, and what hangs on it."""
    made(torc, work, BUG)
    left = torc("recover", "1")
    assert left.returncode == 1
    assert "needs a correction; --retry-unknown repeats it" in left.stdout
    assert "No recoverable jobs found. 1 job failed with unknown causes." in left.stdout
    assert "Use --retry-unknown to retry jobs with unknown failure causes." in left.stdout
    assert left.stdout.endswith("\nNext: torc why-failed 1\n")
    assert document(torc, "recover", "1", "--retry-unknown")["reset_count"] == 2
    (work / "fixed").touch()
    assert torc("run", "1").returncode == 0


def test_a_hook_mends_what_nobody_understands(torc: Any, work: Path) -> None:
    """It is given the workflow and the server; the jobs run again after it."""
    made(torc, work, BUG)
    (work / "fix.sh").write_text('echo "$2 $TORC_WORKFLOW_ID"; torc jobs list "$2" -f json >jobs.json && touch fixed')
    before = state(torc)
    dry = torc("recover", "1", "--recovery-hook", "sh fix.sh --id", "--dry-run")
    assert "Would run the recovery hook: sh fix.sh --id 1" in dry.stdout
    assert (state(torc), (work / "fixed").exists()) == (before, False)
    done = torc("recover", "1", "--recovery-hook", "sh fix.sh --id")
    assert done.returncode == 0, done.stderr
    assert "hook: 1 1" in done.stdout
    assert "runs again after the recovery hook" in done.stdout
    assert done.stdout.endswith("\nNext: torc run 1\n")
    assert [job["id"] for job in json.loads((work / "jobs.json").read_text())["jobs"]] == [1, 2]
    assert torc("run", "1").returncode == 0


@pytest.mark.parametrize(
    ("hook", "message"),
    [("sh -c 'exit 3'", "failed with exit code 3; no job was reset"), ("no-such-program", "could not be started")],
)
def test_a_hook_that_fails_stops_the_recovery(torc: Any, work: Path, hook: str, message: str) -> None:
    """No job is touched."""
    made(torc, work, BUG)
    before = state(torc)
    failed = torc("recover", "1", "--recovery-hook", hook)
    assert failed.returncode == 1
    assert message in failed.stderr
    assert "Recovered" not in failed.stdout
    assert state(torc) == before


def test_bad_requests_are_refused(torc: Any, work: Path) -> None:
    """One message, before anything is done."""
    made(torc, work, BUG)
    for arguments, message in (
        (("recover", "1", "--recovery-hook", "sh 'open"), "--recovery-hook"),
        (("recover", "1", "--max-memory", "much"), "max_memory of recovery: 'much' is not a memory size"),
        (("recover", "1", "--memory-multiplier", "0.5"), "--memory-multiplier"),
        (("watch", "1", "--recover", "--no-such-flag"), "--no-such-flag"),
    ):
        refused = torc(*arguments)
        assert refused.returncode == 2, refused.stdout
        assert message in refused.stderr
    (work / "torc.toml").write_text("[recovery.oom]\nmax_memry = '1g'\n")
    for command in ("recover", "watch"):
        refused = torc(command, "1")
        assert refused.returncode == 2
        assert "torc.toml:2: recovery.oom.max_memry is not an option of this recovery policy" in refused.stderr
    (work / "torc.toml").unlink()
    assert torc("recover", "99").returncode == 1
    assert torc("watch", "99").returncode == 1
    assert not (work / "output" / f"watch_{os.uname().nodename}_99.log").exists()


def test_recovery_ends(torc: Any, work: Path) -> None:
    """After the retries that were allowed, or when a job has all that it may get."""
    made(torc, work, CODES)
    tired = document(torc, "watch", "1", "--recover", "-m", "1", code=1)
    assert (tired["status"], tired["retries"], tired["counts"]["failed"]) == ("failed", 1, 1)
    full = torc("watch", "1", "--recover", "--max-memory", "1536m")
    assert full.returncode == 1
    assert "memory 1536m cannot grow further: 1536m is the most memory that was allowed" in full.stdout
    (work / "torc.toml").write_text("[recovery.oom]\nmax_memory = '1536m'\n")
    (told,) = document(torc, "recover", "1", "--dry-run", code=1)["jobs"]
    assert "1536m is the most memory that was allowed" in told["reason"]
    more = torc("recover", "1", "--dry-run", env={"TORC_RECOVERY__OOM__MAX_MEMORY": "1600m"})
    assert "memory 1.5 GiB → 1600 MiB" in more.stdout
    most = torc("recover", "1", "--dry-run", "--max-memory", "1700m", env={"TORC_RECOVERY__OOM__MAX_MEMORY": "1600m"})
    assert "memory 1.5 GiB → 1700 MiB" in most.stdout
    spent = torc("watch", "1", "-r", "-m", "0")
    assert "Max retries (0) exceeded. Manual intervention required." in spent.stdout


def test_the_ledger_tells_what_has_not_run_yet(torc: Any, work: Path) -> None:
    """A recovery is recorded before any job runs again, and unknown values are shown as unknown."""
    made(torc, work, BUG)
    document(torc, "recover", "1", "--retry-unknown")
    (entry,) = document(torc, "recoveries", "list", 1)["recoveries"]
    assert (entry["decided_by"], entry["causes"], entry["new_status"]) == ("retry_unknown", ["unknown"], None)
    table = torc("recoveries", "list", 1).stdout
    assert "as before" in table
    assert "not run yet" in table
    assert torc("recoveries", "list", 99).returncode == 1


def test_watching_alone_recovers_nothing(torc: Any, work: Path) -> None:
    """It reports how the workflow ended."""
    made(torc, work, CODES)
    seen = torc("watch", "1")
    assert seen.returncode == 1
    assert " (workflow 1) failed: 1 of 2 jobs done, 1 failed\nNext: torc why-failed 1\n" in seen.stdout
    told = document(torc, "watch", "1", code=1)
    assert (told["next_command"], len(told["failures"])) == ("torc why-failed 1", 1)


def test_a_watcher_waits_for_a_runner(torc_env: dict[str, str], work: Path, server: str, torc: Any) -> None:
    """It says what to do while nothing works on the workflow, and sees the runner that then does."""
    env = {**torc_env, "TORC_API_URL": server}
    (work / "spec.yaml").write_text("name: w\njobs: [{name: a, command: 'true'}]\n")
    created = torc("workflows", "create", "spec.yaml", "-f", "json", env=env)
    id_ = str(json.loads(created.stdout)["id"])
    watcher = subprocess.Popen(
        ["torc", "watch", id_, "-p", "3600"],
        cwd=work,
        env={**env, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    shown = [watcher.stdout.readline() for _ in range(3)]
    assert shown[2] == (
        f"No runner works on workflow {id_}: 'torc run {id_}' continues it. Watching goes on; Ctrl-C ends it.\n"
    )
    assert torc("run", id_, env=env).returncode == 0
    rest, _ = watcher.communicate(timeout=DEADLINE_S)
    assert watcher.returncode == 0
    assert f"✓ w (workflow {id_}) completed: 1 job\n" in rest


def test_the_end_of_a_workflow_wakes_the_watcher(torc_env: dict[str, str], work: Path, server: str, torc: Any) -> None:
    """Another runner runs it; the watcher is woken before its interval is over."""
    env = {**torc_env, "TORC_API_URL": server}
    (work / "spec.yaml").write_text(
        "name: w\njobs:\n  - {name: a, command: 'touch begun; until test -e go; do sleep 0.05; done'}\n"
    )
    pipes: Any = {"cwd": work, "env": env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    created = torc("workflows", "create", "spec.yaml", "-f", "json", env=env)
    id_ = str(json.loads(created.stdout)["id"])
    runner = subprocess.Popen(["torc", "run", id_], **{**pipes, "stdout": subprocess.DEVNULL})
    eventually((work / "begun").exists, "the start of the job")
    watcher = subprocess.Popen(["torc", "watch", id_, "--recover", "-p", "3600"], **pipes)
    assert watcher.stdout is not None
    assert watcher.stdout.readline().startswith(f"Watching workflow {id_}")
    (work / "go").touch()
    out, _ = watcher.communicate(timeout=DEADLINE_S)
    assert (watcher.returncode, runner.wait(DEADLINE_S)) == (0, 0)
    assert f"✓ w (workflow {id_}) completed: 1 job\n" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watcher_is_interrupted_cleanly(torc_env: dict[str, str], work: Path, torc: Any, number: int) -> None:
    """What it runs itself is stopped and reported, as by 'torc run'."""
    made(
        torc,
        work,
        "name: w\njobs:\n  - {name: a, command: 'touch begun; exec sleep 300'}\n",
        "workflows",
        "create",
        code=0,
    )
    command = ["torc", "watch", "1", "--recover"]
    process = subprocess.Popen(
        command,
        cwd=work,
        env=torc_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually((work / "begun").exists, "the start of the job")
    process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert [job["status"] for job in document(torc, "jobs", "list", 1)["jobs"]] == ["terminated"]
    refused = torc("recover", "1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'torc run 1' continues it; 1 interrupted job runs again" in refused.stderr
