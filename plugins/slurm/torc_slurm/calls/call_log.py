"""Counts the calls to Slurm's programs, so that a user and a site can see how much is asked of the controller."""

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
"""A ledger that has grown so large is put aside, and the one put aside before is forgotten."""


@frozen
class SlurmCall:
    """One call.

    Attributes:
        at: When, seconds since the epoch.
        purpose: Who asked.
        program: Which program.
        duration_s: How long it took.
        code: Its exit code; None if it did not answer.
    """

    at: float
    purpose: str
    program: str
    duration_s: float
    code: int | None


class CallLog:
    """A file with a line of JSON a call; appended to by all processes of a user, which may be on different nodes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_user(cls) -> "CallLog":
        """Return the ledger of this user."""
        return cls(user_state_path("slurm_calls.jsonl"))

    def note(self, call: SlurmCall) -> None:
        """Append a call. A ledger that cannot be written keeps nobody from working."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(asdict(call)).encode() + b"\n")
                is_full = os.fstat(descriptor).st_size > MAX_LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                self.path.replace(self._former)

    @property
    def _former(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def calls(self, since_s: float) -> Iterator[SlurmCall]:
        """Yield the calls of the last ``since_s`` seconds, oldest first; lines that are none are left out."""
        begin = time.time() - since_s
        for path in (self._former, self.path):
            with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    with suppress(ValueError, TypeError):
                        call = SlurmCall(**json.loads(line))
                        if call.at >= begin:
                            yield call
