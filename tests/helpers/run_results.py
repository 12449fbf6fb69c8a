"""The jobs of a workflow after a run, as the program's lists tell of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen


class JsonProgram(Protocol):
    """The installed program with a server."""

    def json(self, *arguments: str | Path | int, code: int = 0) -> Any:
        """Run it; return the JSON that it printed."""


@frozen
class EndedJob:
    """A job after a run.

    Attributes:
        status: Its status.
        code: Its return code; None if it has no result.
        exit_class: Class of its last ending.
        reason: Reason of its last ending.
        host: Name of the node on which its last attempt ran.
        attempts: How many results it has.
        result: Its last result.
    """

    status: str
    code: int | None
    exit_class: str | None
    reason: str
    host: str
    attempts: int
    result: Mapping[str, Any]

    @property
    def observation(self) -> Mapping[str, Any]:
        """What the executor saw of its last ending."""
        return dict(self.result.get("observation") or {})


def ended_jobs(torc: JsonProgram, workflow_id: int = 1) -> dict[str, EndedJob]:
    """Return the jobs of a workflow by name."""
    nodes = {each["id"]: each["hostname"] for each in listed(torc, "compute-nodes", workflow_id)}
    results: dict[int, list[Mapping[str, Any]]] = {}
    for result in all_results(torc, workflow_id):
        results.setdefault(result["job_id"], []).append(result)
    ended = {}
    for job in listed(torc, "jobs", workflow_id):
        mine = sorted(results.get(job["id"], []), key=lambda each: (each["run_id"], each["attempt_id"]))
        last = mine[-1] if mine else {}
        ended[job["name"]] = EndedJob(
            job["status"],
            last.get("return_code"),
            last.get("exit_class"),
            last.get("reason") or "",
            nodes.get(last.get("compute_node_id"), ""),
            len(mine),
            last,
        )
    return ended


def all_results(torc: JsonProgram, workflow_id: int = 1) -> list[dict[str, Any]]:
    """Return the results of all attempts."""
    return list(torc.json("results", "list", workflow_id, "--all-runs", "--limit", 10_000)["results"])


def listed(torc: JsonProgram, kind: str, workflow_id: int) -> list[dict[str, Any]]:
    """Return all records of a kind."""
    said = torc.json(kind, "list", workflow_id, "--limit", 10_000)
    return list(said[kind.replace("-", "_")])
