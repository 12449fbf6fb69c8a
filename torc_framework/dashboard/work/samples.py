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
from torc_framework.resource_samples import ResourceSample, read_attempts, read_series, series_path

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
