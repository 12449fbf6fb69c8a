"""Waiting for a condition, with a deadline; the only module of the tests that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: object = "", *, patience_s: float = 120.0, pause_s: float = 0.02) -> T:
    """Wait until a condition holds; return its value.

    Args:
        condition: Asked until its value is true.
        what: What the test waits for; the message of the failure at the deadline. A function is called for it.
        patience_s: Seconds from now to the deadline.
        pause_s: Seconds between two questions.
    """
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            reason = what() if callable(what) else what
            raise AssertionError(reason or f"the condition does not hold after {patience_s:g} s")
        time.sleep(pause_s)
    return value


def let_pass(seconds: float) -> None:
    """Let time pass, where that is what the test examines: an outage of so long, a signal at a random moment."""
    time.sleep(seconds)
