"""Interactive plots of resource samples, each one HTML file that needs no network."""

from torc_framework.plots.figures import FORMATS, PlotRequest, write_plots

__all__ = ["FORMATS", "PlotRequest", "write_plots"]
