"""Programs that the SSH executor starts here: their end."""

import asyncio
import os

import pytest
from torc_ssh.connection.ssh_program import end_program, start_program
from waiting import let_pass


async def exit_code_of_a_program_that_is_ended_late() -> int | None:
    process = await start_program(["sh", "-c", "exit 3"])
    assert process.stdout is not None
    await process.stdout.read()
    let_pass(0.05)  # the event loop stands still: the program has ended, and asyncio has not noticed it
    await end_program(process)
    return process.returncode


def test_a_program_that_has_ended_keeps_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread that waits for the program is slow, as on a busy machine; it gets the exit code nevertheless."""
    wait = os.waitpid

    def wait_late(pid: int, options: int) -> tuple[int, int]:
        let_pass(0.5)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", wait_late)  # subprocess has taken its own reference to the function before
    assert asyncio.run(exit_code_of_a_program_that_is_ended_late()) == 3
    assert caplog.messages == []
