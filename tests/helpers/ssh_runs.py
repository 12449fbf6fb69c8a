"""Runs of workflows by the executor ``ssh`` on real hosts, and what they left."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from ssh_hosts import USER, ClientTorc, SshHosts

ALL: Final = "h1,h2,h3,h4"
MARK: Final = 'echo "$TORC_JOB_NAME" >> ~/ran'
"""What a job runs to say that it has begun; see `marks`."""
QUICK: Final = ("--keepalive-s", 1, "--connect-timeout-s", 5)
"""Options with which a lost connection is noticed within seconds."""


def by_ssh(hosts: str = ALL, *options: str | int) -> list[str | int]:
    """Return the words that follow ``torc run SPEC``."""
    return ["--executor", "ssh", "--hosts", hosts, *options]


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


def ended_jobs(torc: ClientTorc, workflow_id: int = 1) -> dict[str, EndedJob]:
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


def all_results(torc: ClientTorc, workflow_id: int = 1) -> list[dict[str, Any]]:
    """Return the results of all attempts."""
    return list(torc.json("results", "list", workflow_id, "--all-runs", "--limit", 10_000)["results"])


def listed(torc: ClientTorc, kind: str, workflow_id: int) -> list[dict[str, Any]]:
    """Return all records of a kind."""
    said = torc.json(kind, "list", workflow_id, "--limit", 10_000)
    return list(said[kind.replace("-", "_")])


def marks(hosts: SshHosts, *names: str) -> Counter[str]:
    """Return how often each word was written to ``~/ran`` on these hosts, which run."""
    words: Counter[str] = Counter()
    for name in names:
        path = hosts.folder / "hosts" / name / "home" / USER / "ran"
        words.update(path.read_text().split() if path.exists() else [])
    return words


def home_of(hosts: SshHosts, name: str) -> Path:
    """Return the home of the hosts' user on a host, as this machine sees it."""
    return hosts.folder / "hosts" / name / "home" / USER
