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

    def said(self, code: int = 0) -> str:
        """Wait until it ends; return what it said."""
        try:
            said, complaint = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            said, complaint = self.process.communicate(timeout=30)
        print(said + complaint)  # shown if the test fails
        assert self.process.returncode == code, said + complaint
        return said


def attempts(torc: ServedTorc, workflow: str, name: str) -> list[dict[str, Any]]:
    """Return the results of a job, oldest first."""
    (job,) = [each["id"] for each in torc.json("jobs", "list", workflow)["jobs"] if each["name"] == name]
    results = torc.json("results", "list", workflow, "--all-runs")["results"]
    return sorted((each for each in results if each["job_id"] == job), key=lambda each: int(each["id"]))
