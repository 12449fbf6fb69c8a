"""Files of samples that look like those of real workflows."""

import math
from pathlib import Path

from torc_framework.resource_samples import ResourceSample, SeriesWriter

GIB = 1 << 30
NASTY = "</script><script>document.title='broken'</script>&amp;\u2028"


def write_samples(path: Path, jobs: int = 3, ticks: int = 60, *, attempts: int = 1, first_id: int = 1) -> Path:
    """Write samples of some jobs, one a second; job N needs N GiB at its peak."""
    writer = SeriesWriter(path)
    names = {first_id + index: f"train_{first_id + index}" for index in range(jobs)}
    names[first_id] = NASTY
    for tick in range(ticks):
        samples = [
            ResourceSample(
                id_,
                1_700_000_000.0 + tick + attempt * 1000 + id_ / 10,
                100 * (1 + math.sin(tick / 9 + id_)),
                int(id_ * GIB * min(1.0, (tick + 1) / 30)),
                1 + (tick + id_) % 4,
                attempt,
            )
            for id_ in names
            for attempt in range(1, attempts + 1)
        ]
        writer.add(samples, names)
    writer.close()
    return path


def one_sample_each(path: Path, jobs: int) -> Path:
    """Write one sample of each of some jobs, all at the same time; job N needs N GiB."""
    return samples_every(path, jobs=jobs, ticks=1, step_s=1.0)


def samples_every(path: Path, *, jobs: int, ticks: int, step_s: float) -> Path:
    """Write samples of jobs with long names, which begin and end together."""
    writer = SeriesWriter(path)
    names = {id_: f"simulate_basin_with_parameters_alpha_{id_ / 10:.3f}_gamma_{id_:04d}" for id_ in range(1, jobs + 1)}
    for tick in range(ticks):
        at = 1_700_000_000.0 + tick * step_s
        writer.add([ResourceSample(id_, at, 10.0 * id_, id_ * GIB, 1 + id_ % 4, 1) for id_ in names], names)
    writer.close()
    return path
