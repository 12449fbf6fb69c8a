"""Files of samples: what a runner's resource monitor writes and `torc_framework.plots` reads."""

from torc_framework.metrics.series import AttemptSeries, ResourceSample, SeriesWriter, read_series, series_path

__all__ = ["AttemptSeries", "ResourceSample", "SeriesWriter", "read_series", "series_path"]
