"""Where the output of jobs goes, and when its files are deleted."""

from pathlib import Path
from typing import Any, get_args

import pytest
from runner_bench import Bench, file, handler, job

from torc_framework.executors import AttemptKey, RunnerContext
from torc_framework.models.exchange import EndedReport
from torc_framework.models.stdio import SEPARATE, Stdio, StdioMode, stdio_of
from torc_framework.runner.attempts.held_jobs import AttemptFactory
from torc_framework.runner.attempts.log_deletion import LogDeletion
from torc_framework.runner.process.runner_log import RunnerLog

TALK = "echo one; echo two >&2; echo three"
FILES: dict[StdioMode, dict[str, str]] = {
    "separate": {".o": "one\nthree\n", ".e": "two\n"},
    "combined": {".o": "one\ntwo\nthree\n"},
    "no_stdout": {".e": "two\n"},
    "no_stderr": {".o": "one\nthree\n"},
    "none": {},
}


def logs(bench: Bench, job_id: int | None = None) -> dict[str, str]:
    """Return the logs of a job, or of all, by suffix."""
    found = (bench.folder / "output" / "job_stdio").glob(f"*_j{job_id or '*'}_*")
    return {path.suffix: path.read_text() for path in found}


@pytest.mark.parametrize("mode", get_args(StdioMode))
@pytest.mark.parametrize("of", ["workflow", "job"])
def test_each_mode_has_its_files(bench: Bench, mode: StdioMode, of: str) -> None:
    """The observation says which mode the attempt had."""
    own: dict[str, Any] = {"stdio": mode} if of == "job" else {}
    workflow_id = bench.create(job("a", TALK, **own), workflow=None if own else {"stdio": mode})
    assert bench.run(workflow_id).counts == {"completed": 1}
    assert logs(bench) == FILES[mode]
    assert bench.results(workflow_id)["a"].observation.get("stdio", "separate") == mode


def test_each_field_of_a_job_wins_alone() -> None:
    """What a job leaves out is the workflow's, also if the job sets the other field."""

    def fields(mode: StdioMode | None = None, deletes: bool | None = None) -> Any:
        return job("x", "true", stdio=mode, delete_stdio_on_success=deletes)

    assert stdio_of(fields()) == stdio_of(fields(), fields()) == SEPARATE
    assert stdio_of(fields("combined", True), fields("none")) == Stdio("none", delete_on_success=True)
    assert stdio_of(fields("combined", True), fields(None, False)) == Stdio("combined")


def test_the_logs_of_completed_jobs_alone_are_deleted(bench: Bench) -> None:
    """Neither those of a failed attempt, nor those of a job that keeps them itself."""
    workflow_id = bench.create(
        job("good", TALK),
        job("bad", f"{TALK}; exit 3"),
        job("keeps", TALK, delete_stdio_on_success=False),
        job("lacks", TALK, output_files=[0]),
        job("again", f"{TALK}; exit $((2 - TORC_ATTEMPT_ID))", failure_handler=0),
        workflow={"delete_stdio_on_success": True},
        files=[file("made")],
        failure_handlers=[handler('[{"match_all_exit_codes": true, "max_retries": 3}]')],
    )
    bench.run(workflow_id)
    ids = {name: each.id for name, each in bench.jobs(workflow_id).items()}
    assert bench.statuses(workflow_id) == {
        "good": "completed",
        "bad": "failed",
        "keeps": "completed",
        "lacks": "failed",
        "again": "completed",
    }
    assert logs(bench, ids["good"]) == {}
    for name in ("bad", "keeps", "lacks"):
        assert logs(bench, ids[name]) == FILES["separate"], name
    left = {path.name for path in (bench.folder / "output" / "job_stdio").glob(f"*_j{ids['again']}_*")}
    assert left == {f"job_wf{workflow_id}_j{ids['again']}_r1_a1{suffix}" for suffix in (".o", ".e")}


def test_rules_search_standard_error_where_it_is_kept(bench: Bench) -> None:
    """In the file of both streams too; a rule fits nothing where standard error goes to no file."""
    command = f"{TALK}; exit $((2 - TORC_ATTEMPT_ID))"
    workflow_id = bench.create(
        job("a", command, failure_handler=0, stdio="combined", delete_stdio_on_success=True),
        job("b", command, failure_handler=0, stdio="none"),
        failure_handlers=[handler('[{"stderr_regex": "two"}]')],
    )
    bench.run(workflow_id)
    assert bench.statuses(workflow_id) == {"a": "completed", "b": "failed"}
    left = [path.name for path in (bench.folder / "output" / "job_stdio").iterdir()]
    assert left == [f"job_wf{workflow_id}_j{bench.jobs(workflow_id)['a'].id}_r1_a1.o"]


def ended(status: str, **seen: Any) -> EndedReport:
    return EndedReport(1, 1, status, 0, 0.0, 0.0, observation={"executor": "local", **seen})


def test_only_a_completed_attempt_wants_deletion() -> None:
    assert LogDeletion.wants(ended("completed", delete_stdio_on_success=True))
    assert not LogDeletion.wants(ended("completed"))
    assert not LogDeletion.wants(EndedReport(1, 1, "completed", 0, 0.0, 0.0))
    for status in ("failed", "terminated", "canceled", "pending_failed"):
        assert not LogDeletion.wants(ended(status, delete_stdio_on_success=True))


def test_a_log_that_cannot_be_deleted_stays(tmp_path: Path) -> None:
    """A folder in its place is named in the runner's log; the other files of the attempt are deleted."""
    context = RunnerContext(1, 1, str(tmp_path), str(tmp_path), "http://127.0.0.1:1")
    attempts = AttemptFactory(context)
    out, err = attempts.log_paths(AttemptKey(1, 1), SEPARATE)
    assert out is not None
    assert err is not None
    Path(out).mkdir(parents=True)
    Path(err).touch()
    (tmp_path / "member.o").touch()
    log = RunnerLog(tmp_path / "runner.log", "info")
    report = ended("completed", delete_stdio_on_success=True)
    LogDeletion(attempts, log).delete(report, [str(tmp_path / "member.o"), str(tmp_path / "gone.o")])
    log.close()
    assert Path(out).is_dir()
    assert not Path(err).exists()
    assert not (tmp_path / "member.o").exists()
    assert out in (tmp_path / "runner.log").read_text()
