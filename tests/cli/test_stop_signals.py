"""Signals of a person who wants a command to end."""

import contextlib
import signal

import pytest

from torc_framework.cli.shared.stop_signals import StopSignals


def test_an_interrupt_that_is_lost_comes_again() -> None:
    """A library may swallow the exception of a signal: the next check raises it."""
    before = signal.getsignal(signal.SIGINT)
    with StopSignals(signal.SIGINT) as interrupts:
        interrupts.check()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_ignored_stays_ignored() -> None:
    """A command under nohup does not end with its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            interrupts.check()
    finally:
        signal.signal(signal.SIGHUP, before)
