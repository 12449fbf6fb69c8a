"""Measure the installed ``torc`` against yardsticks of the same run, and print ratios.

Run it with the Python of the environment that ``torc`` is installed in; ``--help`` lists the rows.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import specs

HERE = Path(__file__).parent
TORC = Path(sys.executable).with_name("torc")
TORC_SERVER = Path(sys.executable).with_name("torc-server")
TICKS = os.sysconf("SC_CLK_TCK")
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


@dataclass
class Row:
    """One measurement beside its yardstick; seconds."""

    name: str
    yardstick: float
    whole: float
    executing: float | None = None

    def cells(self) -> list[str]:
        exec_ratio = f"{self.yardstick / self.executing:.2f}" if self.executing else ""
        ratio = f"{self.yardstick / self.whole:.2f}"
        return [self.name, f"{self.yardstick:.2f}", f"{self.whole:.2f}", ratio, exec_ratio]


@dataclass
class Server:
    """A torc server of our own."""

    url: str
    pid: int

    def cpu(self) -> float:
        """CPU seconds that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Run a server on a free port of loopback with a new database."""
    command = [
        TORC_SERVER,
        "run",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--database",
        folder / "bench.db",
        "--log-level",
        "error",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip().removeprefix("TORC_SERVER_PORT=")
        try:
            yield Server(f"http://127.0.0.1:{port}/torc-service/v1", process.pid)
        finally:
            process.terminate()


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wall(command: list[Any], cwd: Path, env: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begin


def run_torc(base: Path, spec: Path, *options: str) -> tuple[float, float]:
    """Run a spec on a new server; return the wall time of ``torc run`` with these options, and of its jobs alone."""
    folder = Path(tempfile.mkdtemp(dir=base))
    with server(folder) as at:
        env = os.environ | {"TORC_API_URL": at.url, "HOME": str(folder)}
        create = [TORC, "-f", "json", "workflows", "create", spec]
        made = subprocess.run(create, cwd=folder, env=env, check=True, capture_output=True, text=True)
        workflow = str(json.loads(made.stdout)["id"])
        whole = wall([TORC, "-f", "json", "run", workflow, *options], folder, env)
        executing = executing_s(workflow, folder, env)
    shutil.rmtree(folder)
    return whole, executing


def executing_s(workflow: str, folder: Path, env: dict[str, str]) -> float:
    """Seconds from the first start to the last end, from the results."""
    listing = [TORC, "-f", "json", "results", "list", workflow, "--limit", "10000"]
    answer = subprocess.run(listing, cwd=folder, env=env, check=True, capture_output=True, text=True)
    seen = [result["observation"] for result in json.loads(answer.stdout)["results"]]
    return max(o["ended_at"] for o in seen) - min(o["started_at"] for o in seen)


class Bench:
    """The yardsticks and rows, in one throw-away folder."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self.raw = folder / "raw"
        subprocess.run([shutil.which("cc") or "cc", "-O2", "-o", self.raw, HERE / "raw.c"], check=True)

    def raw_s(self, count: int, slots: int, command: str) -> float:
        """Seconds of the C yardstick."""
        done = subprocess.run([self.raw, str(count), str(slots), command], check=True, capture_output=True, text=True)
        return float(done.stdout)

    def against(
        self, yardstick: Callable[[], float], measure: Callable[[], tuple[float, float | None]], name: str
    ) -> Row:
        """Bracket a measurement with its yardstick; the median round counts."""
        rows = []
        for _ in range(self.rounds):
            before = yardstick()
            whole, executing = measure()
            rows.append(Row(name, (before + yardstick()) / 2, whole, executing))
        rows.sort(key=lambda row: row.yardstick / (row.executing or row.whole))
        return rows[len(rows) // 2]

    def jobs(self, name: str, spec: Path, count: int, slots: int, command: str = "true") -> Row:
        """A row of jobs against the C yardstick."""
        return self.against(
            lambda: self.raw_s(count, slots, command),
            lambda: run_torc(self.folder, spec, "--max-parallel-jobs", str(slots)),
            name,
        )

    def parallel(self, count: int, slots: int) -> Row:
        """GNU parallel with a job log on the same commands."""
        lines = self.folder / "lines"
        lines.write_text("true\n" * count, encoding="utf-8")
        log = str(self.folder / "joblog")
        command = ["parallel", "--will-cite", f"-j{slots}", "--joblog", log, "-a", str(lines)]
        return self.against(
            lambda: self.raw_s(count, slots, "true"),
            lambda: (wall(command, self.folder), None),
            f"GNU parallel --joblog, {count}",
        )

    def plan(self, count: int) -> Row:
        """Read, check, plan and store a large spec: CPU seconds of client and server against ``ninja -n``."""
        spec, ninja = specs.levels(self.folder, count)

        def yardstick() -> float:
            begin = children_cpu()
            wall(["ninja", "-n"], ninja)
            return children_cpu() - begin

        def measure() -> tuple[float, float | None]:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            with server(folder) as at:
                env = os.environ | {"TORC_API_URL": at.url, "HOME": str(folder)}
                wall([TORC, "ping"], folder, env)
                begin, begin_server = children_cpu(), at.cpu()
                wall([TORC, "-f", "json", "workflows", "create", spec], folder, env)
                used = children_cpu() - begin + at.cpu() - begin_server
            shutil.rmtree(folder)
            return used, None

        return self.against(yardstick, measure, f"plan and store {count:,} jobs (CPU)")

    def monitor(self, jobs: int, seconds: int) -> Row:
        """Sample running jobs each second and keep the samples: CPU seconds against those of one core."""
        from torc_framework.executors import AttemptKey
        from torc_framework.resource_samples import SeriesWriter
        from torc_framework.runner.monitor.process_tree import ProcessTree
        from torc_framework.runner.monitor.sampler import SampledAttempt, Sampler

        command = ["/bin/sh", "-c", f"sleep {100 * seconds}; true"]
        processes = [subprocess.Popen(command, start_new_session=True) for _ in range(jobs)]
        sampler = Sampler(1, lambda: SeriesWriter(self.folder / "samples.db"), print)
        try:
            now = time.monotonic()
            sampler.add(
                SampledAttempt(AttemptKey(number, 1), f"job_{number}", ProcessTree([process.pid]), now)
                for number, process in enumerate(processes)
            )
            begin = time.process_time()
            time.sleep(seconds)
            used = time.process_time() - begin
        finally:
            sampler.close()
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return Row(f"{jobs} jobs sampled each second for {seconds} s (CPU)", float(seconds), used)


def rows(bench: Bench, wanted: set[str]) -> Iterator[Row]:
    """Measure what is wanted, in the order of the table."""
    folder = bench.folder
    table: list[tuple[str, Callable[[], Row]]] = [
        ("independent", lambda: bench.jobs("1,000 independent", specs.independent(folder, 1000), 1000, 4)),
        ("independent", lambda: bench.jobs("10,000 independent", specs.independent(folder, 10_000), 10_000, 4)),
        ("barrier", lambda: bench.jobs("1000 → 1 → 1000 → 1", specs.barrier(folder, 1000), 2002, 4)),
        ("chain", lambda: bench.jobs("chain of 200", specs.chain(folder, 200), 200, 1)),
        (
            "sleeps",
            lambda: bench.jobs(
                "100 × sleep 0.1, 16 in flight", specs.independent(folder, 100, "sleep 0.1"), 100, 16, "sleep 0.1"
            ),
        ),
    ]
    if shutil.which("parallel"):
        table += [
            ("independent", lambda: bench.parallel(1000, 4)),
            ("independent", lambda: bench.parallel(10_000, 4)),
        ]
    else:
        print("GNU parallel is not installed: its rows are left out", file=sys.stderr)
    if shutil.which("ninja"):
        table.append(("plan", lambda: bench.plan(100_000)))
    else:
        print("ninja is not installed: the plan row is left out", file=sys.stderr)
    table.append(("monitor", lambda: bench.monitor(100, 20)))
    yield from (measure() for name, measure in table if name in wanted)


def render(measured: list[Row]) -> str:
    """The table as Markdown."""
    head = ["row", "yardstick s", "torc s", "ratio, whole", "ratio, exec"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in measured]
    return "\n".join(lines)


def write(path: Path, table: str) -> None:
    """Put the table between the markers of a Markdown file."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{table}\n{END}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["independent", "barrier", "chain", "sleeps", "plan", "monitor"]
    parser.add_argument("rows", nargs="*", choices=[*names, []], help=f"rows to measure (all): {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per row; the median counts")
    parser.add_argument("--write", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as folder:
        measured = []
        for row in rows(Bench(Path(folder), options.rounds), set(options.rows or names)):
            print(" | ".join(row.cells()), file=sys.stderr, flush=True)
            measured.append(row)
    table = render(measured)
    print(table)
    if options.write:
        write(options.write, table)


if __name__ == "__main__":
    main()
