"""Workflows made on a real server and run by a real runner in the test's own process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import (
    FailureHandlerRecord,
    FileRecord,
    JobRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    WorkflowRecord,
)
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner import ProgressListener, RunnerSettings, RunOutcome, run


def job(name: str, command: str, **fields: Any) -> PlannedJob:
    """Return a job of a plan."""
    return PlannedJob(name=name, command=command, **fields)


def requirements(name: str = "r", **fields: Any) -> ResourceRequirementsRecord:
    """Return requirements of jobs; their run time is an hour by default."""
    return ResourceRequirementsRecord(workflow_id=0, name=name, **{"runtime": "PT1H", **fields})


def handler(rules: str) -> FailureHandlerRecord:
    """Return a failure handler."""
    return FailureHandlerRecord(workflow_id=0, name="h", rules=rules)


def file(path: Path | str) -> FileRecord:
    """Return a file."""
    return FileRecord(workflow_id=0, name=Path(path).name, path=str(path))


@define
class Bench:
    """One test's folder, server and plugins."""

    folder: Path
    client: TorcClient
    plugins: PluginManager

    def create(self, *jobs: PlannedJob, workflow: dict[str, Any] | None = None, **plan: Any) -> int:
        """Store a workflow, ready to run; return its id."""
        record = WorkflowRecord(name="test", user="tester", **(workflow or {}))
        return self.client.create_from_plan(Plan(workflow=record, jobs=list(jobs), **plan), initialize=True).id

    def settings(self, workflow_id: int, **changes: Any) -> RunnerSettings:
        """Return settings for a runner that neither takes over signals nor waits long when idle."""
        values: dict[str, Any] = {
            "url": self.client.url,
            "workflow_id": workflow_id,
            "output_dir": self.folder / "output",
            "num_cpus": 4,
            "wait_for_new_jobs_s": 0.2,
            "term_lead_s": 0.5,
            "handle_signals": False,
        }
        return RunnerSettings(**(values | changes))

    def run(self, workflow_id: int, progress: ProgressListener | None = None, **changes: Any) -> RunOutcome:
        """Run a workflow until the runner leaves."""
        return run(self.settings(workflow_id, **changes), self.plugins, progress)

    def run_jobs(self, *jobs: PlannedJob, **plan: Any) -> dict[str, ResultRecord]:
        """Create and run a workflow; return the last result of each job by name."""
        workflow_id = self.create(*jobs, **plan)
        self.run(workflow_id)
        return self.results(workflow_id)

    def jobs(self, workflow_id: int) -> dict[str, JobRecord]:
        """Return the jobs of a workflow by name."""
        return {each.name: each for each in self.client.find(JobRecord, workflow_id=workflow_id)}

    def statuses(self, workflow_id: int) -> dict[str, str | None]:
        """Return the status of each job by name."""
        return {name: each.status for name, each in self.jobs(workflow_id).items()}

    def results(self, workflow_id: int) -> dict[str, ResultRecord]:
        """Return the last result of each job by name."""
        names = {each.id: name for name, each in self.jobs(workflow_id).items()}
        found = self.client.find(ResultRecord, workflow_id=workflow_id, all_runs=True)
        return {names[each.job_id]: each for each in sorted(found, key=lambda each: each.attempt_id)}

    def log(self, workflow_id: int, name: str, suffix: str = ".o", attempt: int = 1) -> str:
        """Return what a job wrote in its first run."""
        id_ = self.jobs(workflow_id)[name].id
        stem = f"job_wf{workflow_id}_j{id_}_r1_a{attempt}"
        return (self.folder / "output" / "job_stdio" / f"{stem}{suffix}").read_text()


@pytest.fixture(scope="session")
def all_plugins() -> PluginManager:
    """Return the installed plugins."""
    return PluginManager.load()


@pytest.fixture
def bench(server: str, tmp_path: Path, all_plugins: PluginManager, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Return a bench in a folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    client = TorcClient(server)
    yield Bench(tmp_path, client, all_plugins)
    client.close()


def most_at_once(log: Path) -> int:
    """Return how many ran at the same time, of jobs that write ``+`` at their start and ``-`` at their end."""
    running = most = 0
    for sign in log.read_text().split():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    return most


def counted(log: Path, seconds: float = 0.1) -> str:
    """Return a command for `most_at_once`."""
    return f"echo + >> {log}; sleep {seconds}; echo - >> {log}"
