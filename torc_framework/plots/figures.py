"""The plots that are made of resource samples, as JSON documents and HTML pages.

The document of a page has a title, charts and, on some pages, a table. ``static/page.js`` draws it; `html_page` writes
both into one file.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.errors import UserError
from torc_framework.plots.html_page import html
from torc_framework.resource_samples import AttemptSeries, ResourceSample, read_series
from torc_framework.system.contained_folder import ContainedFolder
from torc_framework.text.quantities import count_text

FORMATS: Final = ("html", "json")
MOST_JOB_PAGES: Final = 500
"""Above this many jobs, only jobs that are named get pages: each page holds a copy of the plotting library."""
OVERVIEW_POINTS: Final = 500_000
"""Most points of all jobs together in one overview; above it, points are thinned out and the largest values kept."""

PlotPage = dict[str, Any]
Measure = Callable[[ResourceSample], float | None]


def _cpu(sample: ResourceSample) -> float:
    return sample.cpu_percent


def _memory(sample: ResourceSample) -> int:
    return sample.memory_bytes


def _processes(sample: ResourceSample) -> int:
    return sample.num_processes


def _gpu_memory(sample: ResourceSample) -> int | None:
    return sample.gpu_memory_bytes


_MEASURES: Final[Sequence[tuple[str, str, str, Measure]]] = (
    ("CPU", "CPU (100% is one core)", "percent", _cpu),
    ("Memory", "Memory", "bytes", _memory),
    ("Processes", "Number of processes", "count", _processes),
    ("GPU memory", "GPU memory", "bytes", _gpu_memory),
)
"""Title, label of the axis, unit and value of the charts of one job."""


@frozen
class PlotRequest:
    """Which plots are wanted.

    Attributes:
        databases: Files of samples.
        output_dir: Folder for the plots.
        job_ids: Only these jobs; empty is all.
        prefix: Prefix of all file names.
        format: ``html``, or ``json`` for the pages' data alone.
    """

    databases: Sequence[Path]
    output_dir: Path
    job_ids: Sequence[int] = ()
    prefix: str = "resource_plot"
    format: str = "html"


@frozen
class AttemptSamples:
    """The samples of one attempt, with a unique label."""

    label: str
    series: AttemptSeries
    source: str

    @property
    def samples(self) -> list[ResourceSample]:
        """Its samples, oldest first."""
        return self.series.samples


def write_plots(request: PlotRequest) -> tuple[list[Path], list[str]]:
    """Write all plots; return their paths, and remarks for the user.

    Raises:
        UserError: a file holds no samples, no job is left to plot, or the folder cannot be used.
    """
    tracks = load(request.databases, request.job_ids)
    written, remarks = [], []
    jobs = dict.fromkeys(track.series.job_id for track in tracks)
    pages: list[tuple[str, PlotPage]] = []
    if len(jobs) <= MOST_JOB_PAGES or request.job_ids:
        pages += [(f"job_{id_}", job_page([t for t in tracks if t.series.job_id == id_])) for id_ in jobs]
    else:
        remarks.append(f"{len(jobs)} jobs: only jobs named with --job-ids get pages of their own")
    pages += [
        ("cpu_all_jobs", overview_page(_MEASURES[0], tracks)),
        ("memory_all_jobs", overview_page(_MEASURES[1], tracks)),
        ("summary", summary_page(tracks)),
    ]
    try:
        folder = ContainedFolder(request.output_dir)
        for name, page in pages:  # the ids of jobs are what the file of samples says
            file = f"{request.prefix}_{name}.{request.format}"
            folder.write(file, (html(page) if request.format == "html" else json.dumps(page)).encode())
            written.append(folder.below(file))
    except OSError as error:
        raise UserError(f"cannot write to {request.output_dir}: {error.strerror}; see --output-dir") from None
    return written, remarks


def load(databases: Sequence[Path], job_ids: Sequence[int] = ()) -> list[AttemptSamples]:
    """Return the samples of all files.

    Raises:
        UserError: a file cannot be read, a job has no samples, or there are none at all.
    """
    found: list[tuple[Path, AttemptSeries]] = []
    for path in databases:
        try:
            found += [(path, series) for series in read_series(path)]
        except (OSError, ValueError) as error:
            reason = f"cannot read {path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise UserError(reason) from None
    known = {series.job_id for _, series in found}
    if missing := [str(id_) for id_ in job_ids if id_ not in known]:
        raise UserError(f"no samples of job {', '.join(missing)}; there are some of {_some(known)}")
    if not found:
        raise UserError("the files hold no samples; no job ran long enough to be sampled")
    wanted = set(job_ids) or known
    return _labelled([(path, series) for path, series in found if series.job_id in wanted])


def _some(ids: set[int]) -> str:
    shown = [str(id_) for id_ in sorted(ids)[:10]]
    return f"{', '.join(shown)}{', ...' if len(ids) > len(shown) else ''}" if ids else "none"


def _labelled(found: list[tuple[Path, AttemptSeries]]) -> list[AttemptSamples]:
    """Give each attempt a unique label: the name of its job, with attempt and file where these are needed."""
    tracks = []
    names = Counter(series.job_name for _, series in found)
    attempts = Counter((path, series.job_id) for path, series in found)
    for path, series in found:
        marks = [f"attempt {series.attempt_id}"] if attempts[path, series.job_id] > 1 else []
        if names[series.job_name] > attempts[path, series.job_id]:
            marks.append(path.stem.removeprefix("resource_metrics_"))
        label = f"{series.job_name} ({', '.join(marks)})" if marks else series.job_name
        tracks.append(AttemptSamples(label, series, path.name))
    return sorted(tracks, key=lambda track: (track.series.job_id, track.samples[0].timestamp))


# --- pages ----------------------------------------------------------------------------------------


def job_page(tracks: Sequence[AttemptSamples]) -> PlotPage:
    """Return the page of one job: each measure over time, one attempt after the other."""
    series = tracks[0].series
    charts = []
    for track in tracks:
        prefix = f"{track.label}: " if len(tracks) > 1 else ""
        for title, axis, unit, measure in _MEASURES:
            line = _line(title, track.samples, measure)
            if line["values"]:
                charts.append({"title": prefix + title, "axis": axis, "unit": unit, "kind": "lines", "series": [line]})
    return {
        "title": f"{series.job_name} (job {series.job_id})",
        "subtitle": _subtitle(tracks),
        "charts": charts,
        "table": _table(tracks),
    }


def overview_page(shown: tuple[str, str, str, Measure], tracks: Sequence[AttemptSamples]) -> PlotPage:
    """Return a page with one line for each attempt."""
    name, axis, unit, measure = shown
    title = f"{name} of all jobs"
    most = max(10, OVERVIEW_POINTS // len(tracks))
    lines = [_line(track.label, _thinned(track.samples, measure, most), measure) for track in tracks]
    lines.sort(key=lambda line: max(line["values"]), reverse=True)
    chart = {"title": title, "axis": axis, "unit": unit, "kind": "lines", "series": lines}
    return {"title": title, "subtitle": _subtitle(tracks), "charts": [chart]}


def summary_page(tracks: Sequence[AttemptSamples]) -> PlotPage:
    """Return the page of peaks and means."""
    charts = []
    for title, axis, unit, measure in _MEASURES[:2]:
        figures = [(track.label, *_peak_and_mean(track.samples, measure)) for track in tracks]
        figures.sort(key=lambda figure: figure[1], reverse=True)
        labels, peaks, means = zip(*figures, strict=True)
        bars = [{"label": "Peak", "values": peaks}, {"label": "Average", "values": means}]
        chart = {"title": title, "axis": axis, "unit": unit, "kind": "bars", "labels": labels, "series": bars}
        charts.append(chart)
    return {"title": "Resource use of jobs", "subtitle": _subtitle(tracks), "charts": charts, "table": _table(tracks)}


def _subtitle(tracks: Sequence[AttemptSamples]) -> str:
    count = sum(len(track.samples) for track in tracks)
    sources = ", ".join(dict.fromkeys(track.source for track in tracks))
    return f"{count_text(count, 'sample')} from {sources}"


_COLUMNS: Final = (
    ("Job", "text"),
    ("ID", "count"),
    ("Attempt", "count"),
    ("Peak CPU", "percent"),
    ("Average CPU", "percent"),
    ("Peak memory", "bytes"),
    ("Average memory", "bytes"),
    ("Most processes", "count"),
    ("Sampled for", "seconds"),
    ("Samples", "count"),
)


def _table(tracks: Sequence[AttemptSamples]) -> PlotPage:
    rows = [
        [
            track.label,
            track.series.job_id,
            track.series.attempt_id,
            *_peak_and_mean(track.samples, _cpu),
            *_peak_and_mean(track.samples, _memory),
            max(map(_processes, track.samples)),
            round(track.samples[-1].timestamp - track.samples[0].timestamp, 1),
            len(track.samples),
        ]
        for track in tracks
    ]
    return {"columns": [{"label": label, "unit": unit} for label, unit in _COLUMNS], "rows": rows}


def _values(samples: Sequence[ResourceSample], measure: Measure) -> Iterator[tuple[float, float]]:
    for sample in samples:
        if (value := measure(sample)) is not None:
            yield round(sample.timestamp, 3), value


def _line(label: str, samples: Sequence[ResourceSample], measure: Measure) -> dict[str, Any]:
    points = list(_values(samples, measure))
    return {"label": label, "times": [time for time, _ in points], "values": [value for _, value in points]}


def _peak_and_mean(samples: Sequence[ResourceSample], measure: Measure) -> tuple[float, float]:
    values = [value for _, value in _values(samples, measure)]
    return max(values), round(sum(values) / len(values), 1)


def _thinned(samples: Sequence[ResourceSample], measure: Measure, most: int) -> Sequence[ResourceSample]:
    """Return ``most`` samples: from each of ``most`` equal stretches the one with the largest value."""
    if len(samples) <= most:
        return samples
    bounds = [index * len(samples) // most for index in range(most + 1)]
    return [max(samples[begin:end], key=lambda sample: measure(sample) or 0) for begin, end in pairwise(bounds)]
