"""Watchers of workflows on a cluster, for tests."""

import subprocess
from pathlib import Path
from typing import Any, Final

from slurm_cluster import ServedTorc

PATIENCE_S: Final = 420


class Watch:
    """A watcher of a workflow that recovers it; its folder is ``outN``."""

    def __init__(self, torc: ServedTorc, workflow: str, *options: str) -> None:
        program, folder = torc.cluster.bin / "torc", f"out{workflow}"
        command: tuple[str | Path, ...] = (program, "watch", workflow, "-p", "5", "--recover", "-o", folder, *options)
        self.process = torc.cluster.start(*command, env=torc.env)

    def output(self, code: int = 0) -> str:
        """Wait until it ends; return its standard output."""
        try:
            printed, errors = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            printed, errors = self.process.communicate(timeout=30)
        print(printed + errors)  # shown if the test fails
        assert self.process.returncode == code, printed + errors
        return printed


def attempts(torc: ServedTorc, workflow: str, name: str) -> list[dict[str, Any]]:
    """Return the results of a job, oldest first."""
    (job,) = [each["id"] for each in torc.json("jobs", "list", workflow)["jobs"] if each["name"] == name]
    results = torc.json("results", "list", workflow, "--all-runs")["results"]
    return sorted((each for each in results if each["job_id"] == job), key=lambda each: int(each["id"]))
