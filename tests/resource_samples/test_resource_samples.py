"""The file of samples: what is written is read, also after the writer was killed."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from torc_framework.resource_samples import (
    AttemptSeries,
    ResourceSample,
    SeriesWriter,
    read_series,
    read_span,
    read_usage,
)

WRITER = """
import sys
from pathlib import Path
from torc_framework.resource_samples import ResourceSample, SeriesWriter
writer = SeriesWriter(Path(sys.argv[1]))
tick = 0
while True:
    tick += 1
    samples = [ResourceSample(job, float(tick), 1.0, 2, 3) for job in range(100)]
    writer.add(samples, {job: f"job{job}" for job in range(100)})
    print(tick, flush=True)
"""


def test_samples_come_back_by_job_and_attempt(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.db"
    first, second = ResourceSample(1, 10.0, 99.5, 1000, 2, 1), ResourceSample(1, 11.0, 0.0, 2**40, 1, 2, 77)
    for sample, name in ((second, "old"), (first, "näme")):  # as two runners, one after the other
        writer = SeriesWriter(path)
        writer.add([sample], {1: name})
        writer.close()
    assert read_series(path) == [AttemptSeries(1, 1, "näme", [first]), AttemptSeries(1, 2, "näme", [second])]


def test_a_file_that_torc_wrote_is_read(tmp_path: Path) -> None:
    """It has neither attempts nor GPUs, and perhaps no name."""
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE job_metadata (job_id INTEGER PRIMARY KEY, job_name TEXT);"
        "CREATE TABLE job_resource_samples (id INTEGER PRIMARY KEY, job_id INTEGER, timestamp REAL,"
        " cpu_percent REAL, memory_bytes INTEGER, num_processes INTEGER);"
        "INSERT INTO job_resource_samples VALUES (1, 4, 1.5, 2.5, 3, 1);"
    )
    connection.close()
    assert read_series(path) == [AttemptSeries(4, 1, "job 4", [ResourceSample(4, 1.5, 2.5, 3, 1)])]


@pytest.mark.crash
def test_a_killed_writer_leaves_whole_ticks(tmp_path: Path) -> None:
    """At any moment: the file is sound, every tick that was reported is there, none is there in part."""
    path = tmp_path / "x.db"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(3):
                reported = int(writer.stdout.readline())
            writer.kill()
            reported = max([reported, *map(int, writer.stdout.read().split())])
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = [
            count for (count,) in connection.execute("SELECT count(*) FROM job_resource_samples GROUP BY timestamp")
        ]
        assert all(count % 100 == 0 for count in counts)
        assert len(counts) >= reported
        connection.close()
        assert len(read_series(path)) == 100


def test_the_use_of_all_jobs_over_time(tmp_path: Path) -> None:
    """In each part of the time the mean CPU use and the largest memory of each attempt are added up."""
    path = tmp_path / "x.db"
    writer = SeriesWriter(path)
    assert read_span(path) is None
    for tick, (cpu, memory) in enumerate([(50.0, 10), (100.0, 30), (10.0, 5)]):
        samples = [ResourceSample(job, 100.0 + tick, cpu, memory, 1) for job in (1, 2)]
        writer.add(samples, {1: "a", 2: "b"})
    writer.close()
    assert read_span(path) == (100.0, 102.0, 3)
    assert read_usage(path, 100.0, 2.0) == [(0, 150.0, 60), (1, 20.0, 10)]
    with pytest.raises(FileNotFoundError):
        read_usage(tmp_path / "none.db", 0.0, 1.0)


def test_the_journal_is_deleted_at_the_end(tmp_path: Path) -> None:
    """It stays between ticks; a file that a killed writer left with its journal is read, and written, as usual."""
    path = tmp_path / "samples.db"
    killed = SeriesWriter(path)
    killed.add([ResourceSample(1, 1.0, 0.0, 0, 1)], {1: "a"})
    journal = path.with_name(f"{path.name}-journal")
    assert journal.exists()
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    shutil.copy(journal, copy.with_name(journal.name))
    assert [len(each.samples) for each in read_series(copy)] == [1]
    writer = SeriesWriter(copy)
    writer.add([ResourceSample(1, 2.0, 0.0, 0, 1)], {})
    writer.close()
    killed.close()
    assert [*copy.parent.iterdir()] == [copy]
    assert [len(each.samples) for each in read_series(copy)] == [2]
