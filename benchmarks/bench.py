"""Measure the installed ``torc`` against yardsticks of the same run, and print ratios.

Run it with the Python of the environment that ``torc`` is installed in; ``--help`` lists the rows.
"""

import argparse
import compileall
import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import specs
from markdown_tables import render, replace
from torc_servers import Server, running_server

HERE = Path(__file__).parent
TORC = Path(sys.executable).with_name("torc")
HEAD = ("row", "yardstick s", "torc s", "ratio, whole", "ratio, exec", "CPU × yardstick")
SHELLS = ("bash", "sh")
"""Shells of the rows of jobs: torc's default, and the one that starts fastest. The yardstick uses the same."""
PACKAGES = ("torc_framework", "torc_local")
"""Packages that a run of local jobs imports; they are compiled before the first measurement."""


@dataclass
class Sample:
    """One run.

    Attributes:
        whole: Its wall time, or its CPU time in rows whose name ends with "(CPU)"; seconds.
        executing: Wall time from the start of the first job to the end of the last, seconds.
        cpu: CPU time, user and system, of all processes: of the program, of its server, and of the jobs; seconds.
    """

    whole: float
    executing: float | None = None
    cpu: float | None = None


@dataclass
class Row:
    """A run beside its yardstick, which is the mean of the runs before and after it."""

    name: str
    yardstick: Sample
    measured: Sample

    @property
    def speed(self) -> float:
        """The ratio by which rounds are sorted: of the jobs alone if that is known."""
        return self.yardstick.whole / (self.measured.executing or self.measured.whole)

    def cells(self) -> list[str]:
        yardstick, measured = self.yardstick, self.measured
        exec_ratio = f"{yardstick.whole / measured.executing:.2f}" if measured.executing else ""
        cpu_ratio = f"{measured.cpu / yardstick.cpu:.2f}" if measured.cpu and yardstick.cpu else ""
        ratio = f"{yardstick.whole / measured.whole:.2f}"
        return [self.name, f"{yardstick.whole:.2f}", f"{measured.whole:.2f}", ratio, exec_ratio, cpu_ratio]


def server(folder: Path) -> AbstractContextManager[Server]:
    """Return a server with a new database in a folder, for ``with``."""
    return running_server(folder, str(folder / "bench.db"))


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wall(command: list[Any], cwd: Path, env: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begin


def compile_packages() -> None:
    """Compile the measured packages, and all others of the environment.

    Where PYTHONDONTWRITEBYTECODE is set, as in many container images, a package that was installed in place, or with
    ``pip install --no-compile`` as by tests/all.py, would be compiled again at every start, which takes longer than the
    rest of the start.
    """
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        for folder in (found.submodule_search_locations or []) if found else []:
            compileall.compile_dir(folder, quiet=1)
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        compileall.compile_dir(folder, quiet=2)  # some packages contain templates that are no Python


def begin_home(folder: Path) -> None:
    """Make a folder the home of all commands, and run the first ones, which fill the cache in it.

    They look at all plugins.
    """
    os.environ["HOME"] = str(folder)
    os.environ.pop("XDG_CACHE_HOME", None)
    first = specs.chain(folder, 1, "sh")
    for command in ("workflows create", "run"):
        wall([TORC, "-f", "json", *command.split(), first], folder)


def run_torc(base: Path, spec: Path, *options: str) -> Sample:
    """Run a spec on a new server with these options of ``torc run``.

    Its folder stays: in runs right after the deletion of many files, the creation of files takes several times as long,
    which would hide what log files cost at any other time.
    """
    folder = Path(tempfile.mkdtemp(dir=base))
    with server(folder) as at:
        env = os.environ | {"TORC_API_URL": at.url}
        create = [TORC, "-f", "json", "workflows", "create", spec]
        made = subprocess.run(create, cwd=folder, env=env, check=True, capture_output=True, text=True)
        workflow = str(json.loads(made.stdout)["id"])
        begin, begin_server = children_cpu(), at.cpu()
        whole = wall([TORC, "-f", "json", "run", workflow, *options], folder, env)
        cpu = children_cpu() - begin + at.cpu() - begin_server
        return Sample(whole, executing_s(workflow, folder, env), cpu)


def executing_s(workflow: str, folder: Path, env: dict[str, str]) -> float:
    """Seconds from the first start to the last end, from the results."""
    listing = [TORC, "-f", "json", "results", "list", workflow, "--limit", "10000"]
    answer = subprocess.run(listing, cwd=folder, env=env, check=True, capture_output=True, text=True)
    seen = [result["observation"] for result in json.loads(answer.stdout)["results"]]
    return max(o["ended_at"] for o in seen) - min(o["started_at"] for o in seen)


class Bench:
    """The yardsticks and rows, in one throw-away folder."""

    def __init__(self, folder: Path, rounds: int, count: int) -> None:
        self.folder, self.rounds, self.count = folder, rounds, count
        self.raw = folder / "raw"
        subprocess.run([shutil.which("cc") or "cc", "-O2", "-o", self.raw, HERE / "raw.c"], check=True)

    def run_raw(self, count: int, slots: int, shell: str, command: str) -> Sample:
        """Run the C yardstick."""
        begin = children_cpu()
        words = [self.raw, str(count), str(slots), shell, command]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return Sample(float(done.stdout), cpu=children_cpu() - begin)

    def against(self, yardstick: Callable[[], Sample], measure: Callable[[], Sample], name: str) -> Row:
        """Bracket a measurement with its yardstick; the median round counts."""
        rows = []
        for _ in range(self.rounds):
            before, measured, after = yardstick(), measure(), yardstick()
            cpu = (before.cpu + after.cpu) / 2 if before.cpu and after.cpu else None
            row = Row(name, Sample((before.whole + after.whole) / 2, cpu=cpu), measured)
            print(" | ".join(row.cells()), file=sys.stderr, flush=True)
            rows.append(row)
        rows.sort(key=lambda row: row.speed)
        return rows[len(rows) // 2]

    def jobs(self, name: str, spec: Path, count: int, slots: int, shell: str, *, command: str = "true") -> Row:
        """A row of jobs against the C yardstick with the same shell."""
        return self.against(
            lambda: self.run_raw(count, slots, shell, command),
            lambda: run_torc(self.folder, spec, "--max-parallel-jobs", str(slots)),
            f"{name}, {shell}",
        )

    def plan(self, count: int) -> Row:
        """Read, check, plan and store a large spec: CPU seconds of client and server against ``ninja -n``."""
        spec, ninja = specs.levels(self.folder, count)
        first = specs.chain(self.folder, 1, "sh")  # the server imports what it needs for a plan

        def yardstick() -> Sample:
            begin = children_cpu()
            wall(["ninja", "-n"], ninja)
            return Sample(children_cpu() - begin)

        def measure() -> Sample:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            with server(folder) as at:
                env = os.environ | {"TORC_API_URL": at.url}
                wall([TORC, "-f", "json", "workflows", "create", first], folder, env)
                begin, begin_server = children_cpu(), at.cpu()
                wall([TORC, "-f", "json", "workflows", "create", spec], folder, env)
                return Sample(children_cpu() - begin + at.cpu() - begin_server)

        return self.against(yardstick, measure, f"plan and store {count:,} jobs (CPU)")

    def join(self, jobs: int) -> Row:
        """A second runner joins when another holds all jobs that are left: time until it has one, against 50 ms."""
        from second_runner import seconds_until_first_job

        spec = specs.independent(self.folder, jobs, "sh", "sleep 0.1")

        def measure() -> Sample:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            with server(folder) as at:
                env = os.environ | {"TORC_API_URL": at.url}
                create = [TORC, "-f", "json", "workflows", "create", spec]
                made = subprocess.run(create, cwd=folder, env=env, check=True, capture_output=True, text=True)
                workflow = json.loads(made.stdout)["id"]
                runner = [TORC, "-f", "json", "run", str(workflow), "--max-parallel-jobs", "4"]
                return Sample(seconds_until_first_job(at.url, workflow, runner, folder, env))

        return self.against(lambda: Sample(0.05), measure, "first job of a second runner")

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
        return Row(f"{jobs} jobs sampled each second for {seconds} s (CPU)", Sample(float(seconds)), Sample(used))


def job_rows(bench: Bench, folder: Path, shell: str) -> list[tuple[str, Callable[[], Row]]]:
    """The rows of jobs under one shell."""

    def independent(count: int) -> Row:
        return bench.jobs(f"{count:,} independent", specs.independent(folder, count, shell), count, 4, shell)

    def barrier() -> Row:
        return bench.jobs("1000 → 1 → 1000 → 1", specs.barrier(folder, 1000, shell), 2002, 4, shell)

    def chain() -> Row:
        return bench.jobs("chain of 200", specs.chain(folder, 200, shell), 200, 1, shell)

    def sleeps() -> Row:
        spec, command = specs.independent(folder, 100, shell, "sleep 0.1"), "sleep 0.1"
        return bench.jobs("100 × sleep 0.1, 16 in flight", spec, 100, 16, shell, command=command)

    return [
        ("independent", lambda: independent(1000)),
        ("independent", lambda: independent(bench.count)),
        ("barrier", barrier),
        ("chain", chain),
        ("sleeps", sleeps),
    ]


def rows(bench: Bench, wanted: set[str]) -> Iterator[Row]:
    """Measure what is wanted, in the order of the table."""
    folder = bench.folder
    table: list[tuple[str, Callable[[], Row]]] = []
    for shell in SHELLS:
        table += job_rows(bench, folder, shell)
    if shutil.which("ninja"):
        table.append(("plan", lambda: bench.plan(100_000)))
    else:
        print("ninja is not installed: the plan row is left out", file=sys.stderr)
    table.append(("join", lambda: bench.join(200)))
    table.append(("monitor", lambda: bench.monitor(100, 20)))
    yield from (measure() for name, measure in table if name in wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["independent", "barrier", "chain", "sleeps", "plan", "join", "monitor"]
    parser.add_argument("rows", nargs="*", choices=[*names, []], help=f"rows to measure (all): {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per row; the median counts")
    parser.add_argument("--jobs", type=int, default=10_000, help="number of jobs of the larger row 'independent'")
    parser.add_argument("--write", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    compile_packages()
    with tempfile.TemporaryDirectory(prefix="torc-bench-") as folder:
        begin_home(Path(folder))
        measured = [*rows(Bench(Path(folder), options.rounds, options.jobs), set(options.rows or names))]
    table = render(HEAD, (row.cells() for row in measured))
    print(table)
    if options.write:
        replace(options.write, "benchmarks", table)


if __name__ == "__main__":
    main()
