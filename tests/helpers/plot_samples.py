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
