"""Settings of Python's garbage collector for programs that make many objects without cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (200_000, 20, 50)
"""For `gc.set_threshold`. Reports, jobs and events contain no cycles and are freed without the collector. With
Python's default of 700 new objects, searches for cycles take a tenth of a runner's CPU time."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search for cycles rarely during the block, and only among objects that are made in it."""
    former = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*former)
        gc.unfreeze()
