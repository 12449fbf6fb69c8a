"""Interactive plots of resource samples, each one HTML file that opens without a network."""

from torc_framework.plots.figures import FORMATS, PlotRequest, write_plots

__all__ = ["FORMATS", "PlotRequest", "write_plots"]
