"""Conversion of attempts into orders for the supervisor."""

import os
from pathlib import Path
from typing import Final

from torc_framework.api import Attempt, shell_command
from torc_local.attempt_cgroups import AttemptCgroups
from torc_local.options import LocalOptions
from torc_local.supervisor import AttemptOrder, Key

IN_FOLDER: Final = 'cd -- "$1" || exit 126; shift; exec "$@"'
"""Shell script that runs the words after its first argument in the folder of that name."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 4096
"""Longest command that is passed as an argument: the limit of Linux (MAX_ARG_STRLEN), less room for the prefix."""


class OrderBuilder:
    """Builds the supervisor's orders for attempts.

    Args:
        options: Options of the executor.
        journal: Path of the launcher's first journal, beside which scripts are written.
        groups: The attempts' control groups.
    """

    def __init__(self, options: LocalOptions, journal: Path, groups: AttemptCgroups) -> None:
        self._options, self._journal, self._groups = options, journal, groups
        self._directory = str(Path.cwd())

    def build(self, attempt: Attempt) -> AttemptOrder:
        """Return the order for an attempt; a command that is too long for an argument is written to a script.

        Raises:
            OSError: its folder cannot be entered, or the script cannot be written.
            ValueError: its environment cannot be passed to a process.
            LaunchError: its shell cannot be found.
        """
        key = attempt.key.job_id, attempt.key.attempt_id
        return AttemptOrder(
            *key,
            attempt.lane,
            self._arguments(attempt, key),
            {os.fsencode(name): os.fsencode(value) for name, value in attempt.environment.items()},
            *self._stdio(attempt),
            self._groups.plan(key, attempt.memory_limit_bytes),
        )

    def _stdio(self, attempt: Attempt) -> tuple[str, str]:
        if self._options.stdio == "files":
            return attempt.stdout_path, attempt.stderr_path
        return (attempt.stdout_path if self._options.stdio == "combined" else ""), ""

    def _arguments(self, attempt: Attempt, key: Key) -> list[str]:
        """Return the command line: the shell, and the command or the path of a script with it."""
        words, command = shell_command(attempt.shell), attempt.command
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
            self._script_path(order.key).unlink(missing_ok=True)
