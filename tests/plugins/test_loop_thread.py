"""The event loop in a thread of its own."""

import asyncio
import subprocess
import sys
import threading

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
