"""A file of resource samples: a small SQLite database, with the tables and names of NREL's Torc, that people query too.

Readers see whole ticks alone, also when the writer is killed in the middle of one. The journal is SQLite's rollback
journal: output directories are often on network file systems, on which the write-ahead log does not work
(https://www.sqlite.org/wal.html, section "Overview").
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from attrs import Factory, define

if TYPE_CHECKING:
    import sqlite3  # imported at run time when a file is used, which most runners never do

_T = TypeVar("_T")

FOLDER: Final = "resource_utilization"
"""Folder of these files, within the output directory."""
BUSY_S: Final = 5.0
"""How long SQLite waits for another process that writes the same file."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS job_metadata (job_id INTEGER PRIMARY KEY, job_name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS job_resource_samples (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    timestamp REAL NOT NULL,
    cpu_percent REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    num_processes INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL DEFAULT 1,
    gpu_memory_bytes INTEGER
);
CREATE INDEX IF NOT EXISTS job_resource_samples_by_job ON job_resource_samples (job_id, timestamp);
"""


class ResourceSample(NamedTuple):
    """The resource usage of one attempt at one moment.

    Attributes:
        timestamp: Seconds since the epoch, UTC.
        cpu_percent: CPU usage since the last sample; 100 is one core.
        memory_bytes: Memory of all its processes.
        num_processes: Number of its processes.
        gpu_memory_bytes: GPU memory of all its processes; None if that is not known.
    """

    job_id: int
    timestamp: float
    cpu_percent: float
    memory_bytes: int
    num_processes: int
    attempt_id: int = 1
    gpu_memory_bytes: int | None = None


_COLUMNS: Final = ResourceSample._fields
_INSERT: Final = f"INSERT INTO job_resource_samples ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


@define
class AttemptSeries:
    """The samples of one attempt, oldest first."""

    job_id: int
    attempt_id: int
    job_name: str
    samples: list[ResourceSample] = Factory(list)


def series_path(output_dir: Path, hostname: str, workflow_id: int, run_id: int) -> Path:
    """Return the path of a runner's file of samples."""
    return output_dir / FOLDER / f"resource_metrics_{hostname}_{workflow_id}_{run_id}.db"


class SeriesWriter:
    """Appends to a file of samples; it must be used in one thread.

    Raises:
        OSError: the file cannot be made or written. The samples of this call are lost, earlier ones stay.
    """

    def __init__(self, path: Path) -> None:
        import sqlite3

        path.parent.mkdir(parents=True, exist_ok=True)
        self._error = sqlite3.Error
        self._named: set[int] = set()
        try:
            self._connection = sqlite3.connect(path, timeout=BUSY_S)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            # the journal stays between ticks: to make and delete it each time takes a third of what a tick costs
            self._connection.execute("PRAGMA journal_mode = PERSIST")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from error

    def add(self, samples: Sequence[ResourceSample], names: Mapping[int, str]) -> None:
        """Append the samples of one tick in one transaction; ``names`` holds the jobs' names by id."""
        new = [(job_id, name) for job_id, name in names.items() if job_id not in self._named]
        try:
            with self._connection:
                self._connection.executemany("INSERT OR REPLACE INTO job_metadata VALUES (?, ?)", new)
                self._connection.executemany(_INSERT, samples)
        except self._error as error:
            raise OSError(f"samples are lost: {error}") from error
        self._named.update(names)

    def close(self) -> None:
        """Close the file, and delete its journal."""
        with suppress(self._error):  # another process uses the file, and deletes the journal when it closes
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


class AttemptSampleCount(NamedTuple):
    """An attempt in a file of samples, and how many samples the file has of it."""

    job_id: int
    attempt_id: int
    job_name: str
    sample_count: int


def read_attempts(path: Path) -> list[AttemptSampleCount]:
    """Return the attempts of which a file has samples, by job and attempt; files of NREL's Torc are read as well.

    Raises:
        ValueError: it is no such file.
        OSError: it cannot be read.
    """
    return _reading(path, _read_attempts)


def read_series(path: Path, job_id: int | None = None) -> list[AttemptSeries]:
    """Return the samples of a file by job and attempt; files of NREL's Torc are read as well.

    Args:
        job_id: Only samples of this job.

    Raises:
        ValueError: it is no such file.
        OSError: it cannot be read.
    """
    return _reading(path, lambda connection: _read(connection, job_id))


def read_span(path: Path) -> tuple[float, float, int] | None:
    """Return the times of a file's first and last sample, seconds since the epoch, and the number of its times.

    None is returned for a file without samples.

    Raises:
        ValueError: it is no such file.
        OSError: it cannot be read.
    """
    query = "SELECT MIN(timestamp), MAX(timestamp), COUNT(DISTINCT timestamp) FROM job_resource_samples"
    found = _reading(path, lambda connection: connection.execute(query).fetchone())
    return None if found[0] is None else (float(found[0]), float(found[1]), int(found[2]))


def read_usage(path: Path, start_s: float, step_s: float) -> list[tuple[int, float, float]]:
    """Return what all jobs of a file used together, in equal parts of the time: part, CPU percent, memory in bytes.

    In each part the mean CPU use and the largest memory of each attempt are added up; parts without samples are left
    out.

    Args:
        path: The file.
        start_s: Begin of the first part, seconds since the epoch.
        step_s: Length of a part, seconds.

    Raises:
        ValueError: it is no such file.
        OSError: it cannot be read.
    """
    query = """
        SELECT part, SUM(cpu), SUM(memory) FROM (
            SELECT CAST((timestamp - ?) / ? AS INTEGER) AS part, AVG(cpu_percent) AS cpu, MAX(memory_bytes) AS memory
            FROM job_resource_samples GROUP BY part, job_id, {attempt}
        ) GROUP BY part ORDER BY part
    """

    def read(connection: "sqlite3.Connection") -> list[tuple[int, float, float]]:
        attempt = "attempt_id" if "attempt_id" in _columns(connection) else "1"
        return list(connection.execute(query.format(attempt=attempt), (start_s, step_s)))

    return _reading(path, read)


def _reading(path: Path, read: "Callable[[sqlite3.Connection], _T]") -> _T:
    """Return what a function reads from a file of samples."""
    import sqlite3

    with path.open("rb"):  # raises OSError with the reason, which SQLite does not give
        pass
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            return read(connection)
    except sqlite3.Error as error:
        raise ValueError(f"{path} is not a file of resource samples: {error}") from error


def _names(connection: "sqlite3.Connection") -> dict[int, str]:
    return dict(connection.execute("SELECT job_id, job_name FROM job_metadata"))


def _columns(connection: "sqlite3.Connection") -> list[str]:
    """Return the columns of samples that a file has."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(job_resource_samples)")}
    return [name for name in _COLUMNS if name in known]


def _read_attempts(connection: "sqlite3.Connection") -> list[AttemptSampleCount]:
    names = _names(connection)
    attempt = "attempt_id" if "attempt_id" in _columns(connection) else "1"
    rows = connection.execute(
        f"SELECT job_id, {attempt}, COUNT(*) FROM job_resource_samples GROUP BY job_id, {attempt} ORDER BY 1, 2"
    )
    return [AttemptSampleCount(id_, number, names.get(id_) or f"job {id_}", count) for id_, number, count in rows]


def _read(connection: "sqlite3.Connection", job_id: int | None) -> list[AttemptSeries]:
    names, columns = _names(connection), _columns(connection)
    condition, values = ("", ()) if job_id is None else (" WHERE job_id = ?", (job_id,))
    found: dict[tuple[int, int], AttemptSeries] = {}
    rows: Any = connection.execute(
        f"SELECT {', '.join(columns)} FROM job_resource_samples{condition} ORDER BY timestamp, id", values
    )
    for row in rows:
        sample = ResourceSample(**dict(zip(columns, row, strict=True)))
        key = sample.job_id, sample.attempt_id
        if key not in found:
            found[key] = AttemptSeries(*key, names.get(sample.job_id) or f"job {sample.job_id}")
        found[key].samples.append(sample)
    return [found[key] for key in sorted(found)]
