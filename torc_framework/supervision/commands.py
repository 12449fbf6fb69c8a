"""Attempts as commands for one machine, and their conversion into orders for the supervisor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from torc_framework.supervision.shells import find_shell
from torc_framework.supervision.supervisor import AttemptOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torc_framework.supervision.attempt_cgroups import AttemptCgroups
    from torc_framework.supervision.supervisor import Key

IN_FOLDER: Final = 'cd -- "$1" || exit 126; shift; exec "$@"'
"""Shell script that runs the words after its first argument in the folder of that name."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 4096
"""Longest command that is passed as an argument: the limit of Linux (MAX_ARG_STRLEN), less room for the prefix."""


class AttemptCommand(NamedTuple):
    """One attempt to run on this machine; all values are JSON values.

    Attributes:
        job_id: Id of the job.
        attempt_id: Number of the job's attempt.
        command: Text for the shell.
        environment: Variables beyond those of this process.
        stdout: Absolute path of the file for standard output; the null device if it is not kept.
        stderr: Absolute path of the file for standard error, likewise. It may be that of standard output.
        working_dir: Absolute path of the folder to run in.
        lane: Attempts of one lane occupy the same resources, so that one can start in the place of another.
        shell: Shell as job, workflow or option name it; "" is the default. Its program is searched on this machine.
        memory_limit_bytes: The attempt is held to it where control groups allow that; None is no limit.
    """

    job_id: int
    attempt_id: int
    command: str
    environment: Mapping[str, str]
    stdout: str
    stderr: str
    working_dir: str
    lane: int = 0
    shell: str = ""
    memory_limit_bytes: int | None = None

    @property
    def key(self) -> Key:
        """Job id and attempt number."""
        return self.job_id, self.attempt_id


class OrderBuilder:
    """Builds the supervisor's orders for attempts.

    Args:
        journal: Path of the first journal, beside which scripts are written.
        groups: The attempts' control groups.
    """

    def __init__(self, journal: Path, groups: AttemptCgroups) -> None:
        self._journal, self._groups = journal, groups
        try:
            self._directory = str(Path.cwd())
        except FileNotFoundError:  # the folder was removed
            self._directory = ""

    def build(self, command: AttemptCommand) -> AttemptOrder:
        """Return the order for an attempt; a command that is too long for an argument is written to a script.

        Raises:
            OSError: its folder cannot be entered, or the script cannot be written.
            ValueError: its environment cannot be passed to a process, or its shell cannot be found (`ShellError`).
        """
        key = command.key
        return AttemptOrder(
            *key,
            command.lane,
            self._arguments(command, key),
            {os.fsencode(name): os.fsencode(value) for name, value in command.environment.items()},
            command.stdout,
            command.stderr,
            self._groups.plan(key, command.memory_limit_bytes),
        )

    def _arguments(self, attempt: AttemptCommand, key: Key) -> list[str]:
        """Return the command line: the shell, and the command or the path of a script with it."""
        words, command = find_shell(attempt.shell), attempt.command
        if attempt.working_dir != self._directory:
            if not os.access(attempt.working_dir, os.X_OK):
                raise NotADirectoryError(f"cannot run in {attempt.working_dir!r}: no such folder, or no access to it")
            words = ["/bin/sh", "-c", IN_FOLDER, "torc", attempt.working_dir, *words]
        if len(command) < MAX_ARGUMENT_BYTES // 4 or len(os.fsencode(command)) < MAX_ARGUMENT_BYTES:
            return [*words, "-c", command]
        path = self._script_path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(os.fsencode(command))
        return [*words, str(path)]

    def _script_path(self, key: Key) -> Path:
        return self._journal.with_suffix(f".j{key[0]}_a{key[1]}.sh")

    def discard(self, order: AttemptOrder) -> None:
        """Remove the script of an attempt that has ended, if it has one."""
        if order.arguments[-2] != "-c":
            try:
                self._script_path(order.key).unlink()
            except FileNotFoundError:
                return
