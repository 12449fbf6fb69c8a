"""A server and runners as processes that can be killed, and a workflow that shows what ran how often."""

import random
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, field
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.errors import ServerUnreachableError
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import JobRecord, ResultRecord, WorkflowRecord

BIN = Path(sys.executable).parent
DEADLINE_S = 180


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@define
class Bench:
    """One test's server, runners and workflow."""

    folder: Path
    port: int = field(factory=_free_port)
    server: "subprocess.Popen[bytes] | None" = None
    runners: "list[subprocess.Popen[bytes]]" = field(factory=list)
    workflow_id: int = 0
    codes: list[int] = field(factory=list)

    @property
    def url(self) -> str:
        """Base URL; the same after a restart."""
        return f"http://127.0.0.1:{self.port}/torc-service/v1"

    @property
    def log(self) -> Path:
        """File to which every job adds its number when it runs."""
        return self.folder / "log"

    # --- processes -------------------------------------------------------------------------------

    def start_server(self) -> None:
        """Start the server on the database that is there."""
        command = [str(BIN / "torc-server"), "run", "--host", "127.0.0.1", "--port", str(self.port)]
        self.server = subprocess.Popen(
            [*command, "--log-level", "error", "--database", str(self.folder / "torc.db")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        eventually(self._answers, "the server does not come up", patience_s=DEADLINE_S)

    def _answers(self) -> bool:
        client = TorcClient(self.url, timeout=5)
        try:
            client.ping()
        except ServerUnreachableError:
            return False
        finally:
            client.close()
        return True

    def kill_server(self) -> None:
        """Kill the server where it stands."""
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def start_runner(
        self, depth: int = 8, *more: str, program: Sequence[str | Path] = (BIN / "torc",)
    ) -> "subprocess.Popen[bytes]":
        """Start ``torc run`` on the workflow; ``program`` are the first words of the command line."""
        options = ["--max-parallel-jobs", str(depth), "--output-dir", "output", *more]
        process = subprocess.Popen(
            [*program, "--url", self.url, "-f", "json", "run", str(self.workflow_id), *options],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.runners.append(process)
        return process

    def kill_runner(self) -> None:
        """Kill the last runner where it stands, if it has not ended."""
        self.runners[-1].kill()
        self.runners[-1].wait()

    def close(self) -> None:
        """Kill all processes that are left."""
        for process in self.runners:
            process.kill()
            process.wait()
        if self.server is not None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait()

    # --- the workflow ----------------------------------------------------------------------------

    def create(
        self,
        codes: list[int],
        duration_s: float,
        chains: int | None = None,
        before: Callable[[int], str] = lambda _number: "",
    ) -> None:
        """Store a workflow of jobs that end with these codes; negative ones are signals.

        Args:
            before: Returns what the job of a number does at its beginning.
            chains: Each job waits for the one that stands so many before it, however that ends.
        """
        self.codes = codes

        def command(number: int, code: int) -> str:
            end = f"exit {code}" if code >= 0 else f"kill -{-code} $$"
            return f"echo {number} >> {self.log}; {before(number)}sleep {duration_s}; {end}"

        jobs = [
            PlannedJob(name=f"j{number}", command=command(number, code), cancel_on_blocking_job_failure=False)
            for number, code in enumerate(codes)
        ]
        waits = [] if chains is None else [(number, number - chains) for number in range(chains, len(codes))]
        client = TorcClient(self.url)
        record = WorkflowRecord(name="crash", user="tester")
        self.workflow_id = client.create_from_plan(Plan(record, jobs, dependencies=waits), initialize=True).id
        client.close()
        self.log.touch()

    def begun(self) -> int:
        """Return how many jobs have begun so far."""
        return self.log.read_bytes().count(b"\n")

    def wait_until_begun(self, number: int) -> None:
        """Wait until so many jobs have begun."""
        eventually(
            lambda: self.begun() >= number,
            lambda: f"only {self.begun()} of {number} jobs have begun",
            patience_s=DEADLINE_S,
        )

    def statuses(self) -> dict[str, str | None]:
        """Return the status of each job by name."""
        with TorcClient(self.url) as client:
            return {job.name: job.status for job in client.find(JobRecord, workflow_id=self.workflow_id)}

    def check(self) -> None:
        """Every job ended exactly once with its true end, nothing is left over, the database is sound."""
        client = TorcClient(self.url)
        jobs = {each.id: each for each in client.find(JobRecord, workflow_id=self.workflow_id)}
        results = client.find(ResultRecord, workflow_id=self.workflow_id, all_runs=True)
        client.close()
        ran = Counter(self.log.read_text().split())
        assert {number: times for number, times in ran.items() if times != 1} == {}, "ran more than once"
        assert len(ran) == len(self.codes), "never ran"
        assert Counter(each.job_id for each in results) == Counter(dict.fromkeys(jobs, 1)), "results per job"
        seen = {jobs[each.job_id].name: each.exit_code if each.signal is None else -each.signal for each in results}
        assert seen == {f"j{number}": code for number, code in enumerate(self.codes)}
        expected = Counter("completed" if code == 0 else "failed" for code in self.codes)
        assert Counter(each.status for each in jobs.values()) == expected
        with sqlite3.connect(self.folder / "torc.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        database.close()
        state, logs = self.folder / "output" / ".torc_runner", (self.folder / "output").glob("*.log")
        left = [path.name for path in state.glob("*")] if state.exists() else None
        assert left is None, f"files of dead runners are left: {left}; {[log.read_text()[-4000:] for log in logs]}"


def mixed_codes(count: int, chance: random.Random) -> list[int]:
    """Return exit codes, some of them signals."""
    return [chance.choice([0, 0, 0, 1, 3, 77, 137, -9, -11]) for _ in range(count)]
