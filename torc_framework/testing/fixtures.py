"""Pytest fixtures: a real server, and real runs of workflows on it.

Name them in a ``conftest.py``::

    from torc_framework.testing.fixtures import torc_runs, torc_server

``torc_server`` is the base URL of a server on a fresh database, one for each test module. ``torc_runs``
creates and runs workflows on it with the installed ``torc``, in a folder of its own, where ``torc_plugins/``
may hold plugins that are not installed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, field

from torc_framework.api import JobRecord, ResultRecord, TorcClient
from torc_framework.embedded.server import EmbeddedServer

__all__ = ["FinishedRun", "WorkflowRuns", "torc_runs", "torc_server"]

PATIENCE_S: Final = 300.0
"""How long a command may take."""


@pytest.fixture(scope="module")
def torc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a real server on a fresh database."""
    with EmbeddedServer(tmp_path_factory.mktemp("torc_server") / "torc.db") as server:
        yield server.url


@define
class FinishedRun:
    """A workflow after a run.

    Attributes:
        exit_status: Exit code of ``torc run``: 0 if every job completed.
        stderr: What it wrote there.
    """

    workflow_id: int
    exit_status: int
    stderr: str
    _client: TorcClient = field(alias="client", repr=False)
    _folder: Path = field(alias="folder", repr=False)

    @property
    def jobs(self) -> dict[str, JobRecord]:
        """The jobs by name."""
        return {job.name: job for job in self._client.iterate(JobRecord, workflow_id=self.workflow_id)}

    @property
    def statuses(self) -> dict[str, str | None]:
        """The jobs' statuses by name."""
        return {name: job.status for name, job in self.jobs.items()}

    def results(self, name: str) -> list[ResultRecord]:
        """Return the ends of all attempts of a job, oldest first."""
        job_id = self.jobs[name].id
        found = self._client.find(ResultRecord, workflow_id=self.workflow_id, job_id=job_id, all_runs=True)
        return sorted(found, key=lambda result: (result.run_id, result.attempt_id))

    def log(self, name: str, *, stderr: bool = False, attempt: int = 1, run: int = 1) -> str:
        """Return what an attempt wrote."""
        stem = f"job_wf{self.workflow_id}_j{self.jobs[name].id}_r{run}_a{attempt}"
        return (self._folder / "output" / "job_stdio" / f"{stem}.{'e' if stderr else 'o'}").read_text(errors="replace")


@define
class WorkflowRuns:
    """Creates and runs workflows.

    Attributes:
        folder: Where ``torc`` is called; specs, ``torc_plugins/`` and ``output/`` are here.
        client: A client of the server.
    """

    folder: Path
    client: TorcClient
    _url: str = field(alias="url", repr=False)

    def plugin(self, name: str, source: str) -> None:
        """Write a plugin file of the project, and make ``torc`` trust its folder."""
        folder = self.folder / "torc_plugins"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(source)
        trusted = self.torc("plugins", "trust")
        assert trusted.returncode == 0, trusted.stderr

    def torc(self, *arguments: str | int | Path, env: Mapping[str, str] | None = None) -> Any:
        """Call the installed ``torc``; return the process that has ended, with its output as text."""
        return subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "torc_framework.cli.programs.torc",
                *(str(argument) for argument in arguments),
            ],
            cwd=self.folder,
            env={
                **os.environ,
                "HOME": str(self.folder),
                "XDG_STATE_HOME": str(self.folder / "state"),
                "TORC_API_URL": self._url,
                **(env or {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def run(self, spec: str | Mapping[str, Any], *options: str) -> FinishedRun:
        """Run a workflow to its end.

        Args:
            spec: YAML text, or its values.
            options: Further options of ``torc run``.
        """
        path = self.folder / "spec.yaml"
        path.write_text(spec if isinstance(spec, str) else json.dumps(spec))  # JSON is YAML
        done = self.torc("run", path, "-f", "json", *options)
        try:
            workflow_id = json.loads(done.stdout)["workflow_id"]
        except (ValueError, KeyError):
            pytest.fail(f"torc run did not run the workflow:\n{done.stderr}")
        return FinishedRun(workflow_id, done.returncode, done.stderr, client=self.client, folder=self.folder)


@pytest.fixture
def torc_runs(torc_server: str, tmp_path: Path) -> Iterator[WorkflowRuns]:
    """Runs of workflows on ``torc_server``, in a folder of their own."""
    folder = tmp_path / "project"
    folder.mkdir()
    with TorcClient(torc_server) as client:
        yield WorkflowRuns(folder, client, url=torc_server)
