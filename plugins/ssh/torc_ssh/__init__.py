"""The executor plugin ``ssh``: jobs on machines over SSH, and runners of torc on them."""

__version__ = "0.1.0"
