"""The resource samples of a workflow's attempts over time, from the files of its runners."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.attempt_logs import output_dir_of
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.monitoring.log_files import LogPlace, open_log
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.resource_samples import (
    ResourceSample,
    read_attempts,
    read_series,
    read_span,
    read_usage,
    series_path,
)

MOST_SOURCES: Final = 1_000
"""Most files that are looked for."""
MOST_POINTS: Final = 2_000
"""Most points of a series; further ones are thinned out, and the largest values kept."""
_MEASURES: Final = ("cpu_percent", "memory_bytes", "num_processes", "gpu_memory_bytes")


@frozen
class SampleSource:
    """The file of samples of the runners of one machine in one run.

    Attributes:
        id: The runner and the run, as text.
    """

    id: str
    run_id: int
    place: LogPlace


JobUsage = dict[tuple[int, int], list[ResourceSample]]
"""Samples of the attempts of one job, oldest first, by run and attempt."""


@frozen
class WorkflowUsage:
    """What the jobs of a workflow used together, in equal parts of a time.

    Attributes:
        run_id: The run.
        start_s: First sample, seconds since the epoch.
        end_s: Last sample.
        cpu_percent: Sum of CPU use; 100 is one core. None: no sample is of this part.
        memory_bytes: Sum of memory.
    """

    run_id: int
    start_s: float
    end_s: float
    cpu_percent: list[float | None]
    memory_bytes: list[float | None]


def sources(client: TorcClient, workflow_id: int, reader: str | None) -> dict[str, Any]:
    """Return the files of samples with their attempts, as JSON values.

    Args:
        reader: See `open_log`.
    """
    found = []
    for source in _sources(client, workflow_id):
        try:
            attempts = read_attempts(_checked(source, reader))
        except RefusedError:
            continue
        except (OSError, ValueError) as error:
            found.append(_values(source) | {"jobs": [], "count": 0, "note": str(error)})
            continue
        jobs = [{"job_id": each.job_id, "job_name": each.job_name, "attempt_id": each.attempt_id} for each in attempts]
        found.append(
            _values(source) | {"jobs": jobs, "count": sum(each.sample_count for each in attempts), "note": None}
        )
    return {"workflow_id": workflow_id, "sources": found}


def series(
    client: TorcClient, workflow_id: int, source_id: str, job_id: int, attempt_id: int | None, *, reader: str | None
) -> dict[str, Any]:
    """Return the samples of an attempt in columns, as JSON values; the last attempt if none is named.

    Raises:
        RefusedError: there is no such file, or it has no such samples (404), or the reader may not read it (403).
    """
    source = next((each for each in _sources(client, workflow_id) if each.id == source_id), None)
    if source is None:
        raise RefusedError(404, f"workflow {workflow_id} has no samples {source_id[:50]!r}")
    try:
        found = read_series(_checked(source, reader), job_id)
    except (OSError, ValueError) as error:
        raise RefusedError(404, str(error)) from error
    wanted = [each for each in found if attempt_id in (None, each.attempt_id)]
    if not wanted:
        raise RefusedError(404, f"there are no samples of job {job_id}")
    chosen = wanted[-1]
    points = [*_thinned(chosen.samples)]
    return {
        "job_id": job_id,
        "job_name": chosen.job_name,
        "attempt_id": chosen.attempt_id,
        "count": len(chosen.samples),
        "t": [time for time, _ in points],
        **{name: [values[at] for _, values in points] for at, name in enumerate(_MEASURES)},
    }


def job_usage(client: TorcClient, workflow_id: int, job_id: int, pairs: Sequence[tuple[int, int]]) -> JobUsage:
    """Return the samples of a job's attempts, by run and attempt; attempts without samples here are left out.

    Args:
        pairs: Run and runner (compute node) of the attempts.
    """
    found: JobUsage = {}
    folders: dict[int, tuple[Path, str] | None] = {}
    for run_id, node_id in sorted({*pairs}):
        if node_id not in folders:
            folders[node_id] = _machine(client.get(ComputeNodeRecord, node_id))
        machine = folders[node_id]
        if machine is None:
            continue
        source = SampleSource("", run_id, _place(*machine, workflow_id, run_id))
        try:
            attempts = read_series(_checked(source, None), job_id)
        except (RefusedError, OSError, ValueError):
            continue
        found |= {(run_id, each.attempt_id): each.samples for each in attempts}
    return found


def workflow_usage(client: TorcClient, workflow_id: int, most: int) -> WorkflowUsage | None:
    """Return what the jobs of a workflow used together in its last run with samples; None if there are none here.

    Args:
        most: Most equal parts of the time.
    """
    by_run: dict[int, list[SampleSource]] = {}
    for source in _sources(client, workflow_id):
        by_run.setdefault(source.run_id, []).append(source)
    for run_id in sorted(by_run, reverse=True):
        spans: list[tuple[Path, float, float, int]] = []
        for source in by_run[run_id]:
            try:
                path = _checked(source, None)
                span = read_span(path)
            except (RefusedError, OSError, ValueError):
                continue
            if span is not None:
                spans.append((path, *span))
        if spans:
            return _added_up(run_id, spans, most)
    return None


def _added_up(run_id: int, spans: Sequence[tuple[Path, float, float, int]], most: int) -> WorkflowUsage:
    """Return the sums of several files over the same parts of time, so many that each has samples of all files."""
    columns = max(1, min(most, min(each[3] for each in spans) // 2))
    start, end = min(each[1] for each in spans), max(each[2] for each in spans)
    step = max((end - start) / columns, 0.001)
    cpu: list[float | None] = [None] * columns
    memory: list[float | None] = [None] * columns
    for path, *_ in spans:
        for place, percent, size in read_usage(path, start, step):
            at = min(place, columns - 1)
            cpu[at] = (cpu[at] or 0.0) + percent
            memory[at] = (memory[at] or 0.0) + size
    return WorkflowUsage(run_id, start, end, cpu, memory)


def _machine(node: ComputeNodeRecord) -> tuple[Path, str] | None:
    folder = output_dir_of(node)
    return None if folder is None else (folder, node.hostname)


def _sources(client: TorcClient, workflow_id: int) -> list[SampleSource]:
    """Return the files that runners of a workflow may have made, one for each machine and run."""
    last_run = client.workflow_status(workflow_id).run_id
    machines: dict[tuple[Path, str], int] = {}
    for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id):
        if (folder := output_dir_of(node)) is not None:
            machines.setdefault((folder, node.hostname), node.id or 0)
    pairs = [(run_id, key) for run_id in range(last_run, 0, -1) for key in machines]
    return [
        SampleSource(f"{machines[folder, hostname]}-{run_id}", run_id, _place(folder, hostname, workflow_id, run_id))
        for run_id, (folder, hostname) in pairs[:MOST_SOURCES]
    ]


def _place(folder: Path, hostname: str, workflow_id: int, run_id: int) -> LogPlace:
    path = series_path(folder, hostname.replace("/", "_"), workflow_id, run_id)
    return LogPlace(folder.absolute(), (path.parent.name, path.name), hostname)


def _checked(source: SampleSource, reader: str | None) -> Path:
    """Return the path of a file that exists, is no link, and that the reader may read."""
    with open_log(source.place, reader):
        return source.place.path


def _values(source: SampleSource) -> dict[str, Any]:
    return {
        "id": source.id,
        "run_id": source.run_id,
        "hostname": source.place.hostname,
        "path": str(source.place.path),
        "kind": "jobs",
    }


def _thinned(samples: Sequence[ResourceSample]) -> Iterator[tuple[float, tuple[Any, ...]]]:
    """Yield time and measures of at most `MOST_POINTS` points, each with the largest values of its samples."""
    size = max(1, -(-len(samples) // MOST_POINTS))
    for begin in range(0, len(samples), size):
        part = samples[begin : begin + size]
        columns = ([getattr(each, name) for each in part if getattr(each, name) is not None] for name in _MEASURES)
        yield part[0].timestamp, tuple(max(values, default=None) for values in columns)
