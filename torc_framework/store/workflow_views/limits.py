"""The sizes of views; apart from the modules that make views, which are imported for a call."""

from typing import Final

DEFAULT_FIELDS: Final = ("id", "name", "status", "attempt", "exit", "class", "seconds", "node")
"""Columns of jobs."""
DEFAULT_JOBS: Final = 200
"""Jobs of a part of a list."""
MOST_JOBS: Final = 1000
"""Most jobs of a part of a list."""

JOBS_KIND: Final = "jobs"
"""The graph of dependencies between jobs."""
LINKED_KINDS: Final = ("files", "user_data")
"""The graphs of jobs with what they write and read."""
DEFAULT_NODES: Final = 500
"""Nodes of a graph."""
MOST_NODES: Final = 5000
"""Most nodes of a graph."""
DEEPEST: Final = 10
"""Most dependencies between a job and a neighbour that is drawn."""

DEFAULT_WIDTH: Final = 1000
"""Pixels of a timeline."""
MOST_WIDTH: Final = 10_000
"""Most pixels of a timeline."""
DEFAULT_LANES: Final = 50
"""Lanes of a timeline."""
MOST_LANES: Final = 200
"""Most lanes of a timeline."""

DEFAULT_KEYS: Final = ("class", "exit", "signal", "reason")
"""What separates groups of failures."""
DEFAULT_GROUPS: Final = 100
"""Groups of failures, or of jobs that wait."""
MOST_GROUPS: Final = 200
"""Most groups of failures, or of jobs that wait."""

DEFAULT_VALUES: Final = 50
"""Values of an axis of a sweep."""
MOST_VALUES: Final = 100
"""Most values of an axis of a sweep."""
