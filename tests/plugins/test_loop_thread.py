"""The event loop in a thread of its own."""

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from torc_framework.api import LoopThread

LOOP = LoopThread("test-loop")


def test_a_coroutine_runs_in_the_thread() -> None:
    async def name() -> str:
        return threading.current_thread().name

    assert LOOP.run(name()) == LOOP.run(name()) == "test-loop"


def test_an_exception_reaches_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        LOOP.run(fail())


async def running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


@pytest.mark.parametrize("is_posted", [False, True])
def test_an_interrupt_before_the_wait_ends_the_coroutine(monkeypatch: pytest.MonkeyPatch, is_posted: bool) -> None:
    """Before the event loop gets the coroutine, or right after that: it is closed or cancelled without a warning."""
    thread = LoopThread("test-interrupts")
    loop = thread.run(running_loop())
    call_soon = loop.call_soon_threadsafe
    calls: list[Callable[..., object]] = []

    def interrupted(function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        calls.append(function)
        if is_posted or len(calls) > 1:
            call_soon(function, *arguments, **options)
        if len(calls) == 1:
            raise KeyboardInterrupt

    coroutine = asyncio.Event().wait()
    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.run(coroutine)
    monkeypatch.undo()
    thread.run(asyncio.sleep(0))
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_the_event_loop_goes_on_after_interrupts_at_any_moment() -> None:
    """A timer interrupts 300 calls, each at another moment of its first 200 µs."""
    program = """
import asyncio, signal
from torc_framework.api import LoopThread

def interrupt(*_):
    raise KeyboardInterrupt

thread = LoopThread("test-loop")
thread.run(asyncio.sleep(0))
signal.signal(signal.SIGALRM, interrupt)
for number in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, (1 + number % 200) * 1e-6)
        thread.run(asyncio.sleep(0.02))
    except KeyboardInterrupt:
        pass
thread.run(asyncio.sleep(0))
print("alive")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "alive\n"


def test_functions_are_called_in_the_order_in_which_they_were_posted() -> None:
    seen: list[int] = []
    for number in range(100):
        LOOP.post(seen.append, number)
    LOOP.run(asyncio.sleep(0))
    assert seen == [*range(100)]


def test_the_end_of_the_process_cancels_what_is_left_and_prints_nothing() -> None:
    program = """
import asyncio
from torc_framework.api import LoopThread

async def work():
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up", flush=True)

async def begin():
    global task
    task = asyncio.create_task(work())
    await asyncio.sleep(0)

LoopThread("test-loop").run(begin())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("cleaned up\n", "")
