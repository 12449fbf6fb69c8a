"""The log of all calls of Slurm's programs, by which a user and a site see the load on the controller."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import asdict, frozen

from torc_slurm.shared.paths import user_state_path

MAX_LOG_BYTES: Final = 4 * 1024**2
"""A log that has become larger than this is renamed, and replaces the one renamed before."""


@frozen
class SlurmCall:
    """One call of a program.

    Attributes:
        at: When it ended, seconds since the epoch.
        purpose: What it was for.
        program: Name of the program.
        duration_s: How long it took.
        code: Exit code; None if Slurm did not answer.
    """

    at: float
    purpose: str
    program: str
    duration_s: float
    code: int | None


class CallLog:
    """A file with one line of JSON per call. All processes of a user append to it, also from different nodes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_user(cls) -> "CallLog":
        """Return the log of this user."""
        return cls(user_state_path("slurm_calls.jsonl"))

    def append(self, call: SlurmCall) -> None:
        """Append a call; errors of the file are ignored."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(asdict(call)).encode() + b"\n")
                is_full = os.fstat(descriptor).st_size > MAX_LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                self.path.replace(self._older_path)

    @property
    def _older_path(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def calls(self, since_s: float) -> Iterator[SlurmCall]:
        """Yield the calls of the last ``since_s`` seconds, oldest first; lines of another form are skipped."""
        begin = time.time() - since_s
        for path in (self._older_path, self.path):
            with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    with suppress(ValueError, TypeError):
                        call = SlurmCall(**json.loads(line))
                        if call.at >= begin:
                            yield call
