"""Fake programs of Slurm, for faults that a real cluster does not show on demand: state on disk, faults by script.

`write_programs` puts ``sbatch``, ``squeue``, ``sacct``, ``scancel`` and ``scontrol`` into a folder for PATH. They
know only what the allocator asks, and keep jobs in `jobs.json` of their folder; a test edits them with `FakeSlurm`.
"""

import fcntl
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PROGRAMS: Final = ("sbatch", "squeue", "sacct", "scancel", "scontrol")


class FakeSlurm:
    """A controller and an accounting database in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    # --- what a test does ---------------------------------------------------------------------------

    def write_programs(self, folder: Path) -> Path:
        """Write the programs into a folder, which is returned: put it on PATH."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            path = folder / name
            path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{__file__}' '{self.folder}' {name} \"$@\"\n")
            path.chmod(0o755)
        return folder

    @contextmanager
    def state(self) -> Iterator[dict[str, Any]]:
        """Yield the whole state, which the caller may change."""
        path = self.folder / "state.json"
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads(path.read_text()) if path.exists() else {"jobs": {}, "faults": {}, "calls": []}
            yield state
            path.write_text(json.dumps(state))

    def fault(self, program: str, *answers: Mapping[str, Any]) -> None:
        """Let the next calls of a program fail, one answer for each.

        Keys: ``stderr`` and ``code``; ``accepts`` (it does its work all the same); ``hangs_s``.
        """
        with self.state() as state:
            state["faults"].setdefault(program, []).extend(answers)

    def set(self, id_: str, **facts: Any) -> None:
        """Change a job: ``state``, ``booked`` (the state in sacct; None is no row), ``queued``."""
        with self.state() as state:
            state["jobs"][id_].update(facts)

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """All jobs by id."""
        with self.state() as state:
            jobs: dict[str, dict[str, Any]] = state["jobs"]
        return jobs

    def calls(self, program: str) -> list[list[str]]:
        """Return the arguments of each call of a program."""
        with self.state() as state:
            return [call[1:] for call in state["calls"] if call[0] == program]

    # --- what the programs do -----------------------------------------------------------------------

    def call(self, program: str, arguments: Sequence[str], stdin: str) -> int:
        """Be a program; return its exit code."""
        with self.state() as state:
            state["calls"].append([program, *arguments])
            pending = state["faults"].get(program, [])
            fault = pending.pop(0) if pending else {}
            if not fault or fault.get("accepts"):
                printed = getattr(self, f"_{program}")(state, list(arguments), stdin)
            code = state.pop("code", 0)
        time.sleep(fault.get("hangs_s", 0))
        if fault:
            print(f"{program}: error: {fault.get('stderr', '')}", file=sys.stderr)
            return int(fault.get("code", 1))
        if printed:
            print(printed)
        return int(code)

    def _sbatch(self, state: dict[str, Any], _arguments: list[str], stdin: str) -> str:
        options = dict(
            line.removeprefix("#SBATCH --").partition("=")[::2]
            for line in stdin.splitlines()
            if line.startswith("#SBATCH --")
        )
        first, last = (int(word) for word in options["array"].split("-")) if "array" in options else (0, 0)
        array = str(1000 + len(state["jobs"]))
        for task in range(first, last + 1):
            key = array if not task else f"{array}_{task}"
            job = {"id": array, "array": array, "task": task or None, "state": "PENDING", "name": options["job-name"]}
            state["jobs"][key] = {
                **job,
                "script": stdin,
                "queued": True,
                "booked": "PENDING",
                "nodes": "",
                "reason": "None",
            }
        return array

    def _chosen(self, jobs: Mapping[str, Any], words: Sequence[str]) -> list[dict[str, Any]]:
        """Return the jobs that ids mean: ``7``, ``7_3``, ``7_[1-3,5]``; an array's id means all of its tasks."""
        found = []
        for word in words:
            array, _, tasks = word.partition("_")
            numbers = _numbers(tasks.strip("[]")) if tasks else None
            found += [
                job
                for job in jobs.values()
                if (job["id"] == word or job["array"] == array) and (numbers is None or job["task"] in numbers)
            ]
        return found

    def _scontrol(self, state: dict[str, Any], arguments: list[str], _stdin: str) -> str:
        words = dict(word.partition("=")[::2] for word in arguments if "=" in word)
        for job in self._chosen(state["jobs"], [words["JobId"]]):
            if job["state"] == "PENDING" and job["id"] == job["array"]:
                job["id"] = str(5000 + int(job["task"]) + 10 * int(job["array"]))
        return ""

    def _scancel(self, state: dict[str, Any], arguments: list[str], _stdin: str) -> str:
        for job in self._chosen(state["jobs"], [word for word in arguments if not word.startswith("-")]):
            if job["task"] and job["id"] in arguments and "--me" not in arguments:
                continue  # it does not know the own id of a task
            if job["state"] in ("PENDING", "RUNNING"):
                job.update(state="CANCELLED", booked="CANCELLED by 1001", queued=False)
        mine = {job["id"] for job in state["jobs"].values() if not job.get("user")}
        unknown = [word for word in arguments if word.isdecimal() and word not in mine] if "--me" in arguments else []
        for word in unknown:
            print(f"scancel: error: Kill job error on job id {word}: Invalid job id specified", file=sys.stderr)
        state["code"] = int(bool(unknown))
        return ""

    def _squeue(self, state: dict[str, Any], arguments: list[str], _stdin: str) -> str:
        options = dict(word.partition("=")[::2] for word in arguments)
        jobs = [job for job in state["jobs"].values() if job["queued"]]
        if "--name" in options:
            jobs = [job for job in jobs if job["name"] == options["--name"]]
        if "--jobs" in options:
            jobs = [job for job in jobs if job["array"] == options["--jobs"]]
        lines = (
            (j["id"], j["array"], j["task"] or "N/A", j["state"], j["reason"], j["nodes"], j["name"]) for j in jobs
        )
        return "\n".join("|".join(map(str, line)) for line in lines)

    def _sacct(self, state: dict[str, Any], arguments: list[str], _stdin: str) -> str:
        (ids,) = (word.partition("=")[2].split(",") for word in arguments if word.startswith("--jobs="))
        rows = []
        for job in state["jobs"].values():
            if job["id"] in ids and job["booked"] is not None:
                late = job.get("late", 0)
                word = "RUNNING" if late else job["booked"]
                job["late"] = max(0, late - 1)
                user = job.get("user", "")
                rows.append("|".join((job["id"], user, word, "0:0", "0:0", "None", job["nodes"] or "None assigned")))
        return "\n".join(rows)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


if __name__ == "__main__":
    fake = FakeSlurm(Path(sys.argv[1]))
    sys.exit(fake.call(sys.argv[2], sys.argv[3:], sys.stdin.read() if sys.argv[2] == "sbatch" else ""))
