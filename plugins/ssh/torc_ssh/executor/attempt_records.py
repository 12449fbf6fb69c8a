"""The file that says where logs and output files of attempts belong, for the runner that takes over."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define, frozen

from torc_framework.api import AttemptKey
from torc_ssh.executor.file_copies import FilePair

STATE_DIR: Final = ".torc_runner"
"""Folder within the output folder for what outlives a runner."""


@frozen
class AttemptFiles:
    """The files of one attempt that come home when it ends.

    Attributes:
        logs: The different files of standard output and standard error.
        outputs: Declared output files.
    """

    logs: tuple[FilePair, ...] = ()
    outputs: tuple[FilePair, ...] = ()


@define
class AttemptRecords:
    """The files of the attempts of one launcher, in memory and on disk.

    Attributes:
        path: The file, one line of JSON for each attempt; it exists when an attempt was recorded.
    """

    path: Path
    by_key: dict[AttemptKey, AttemptFiles] = Factory(dict)

    def add(self, files: Mapping[AttemptKey, AttemptFiles]) -> None:
        """Record attempts, before they are sent.

        Raises:
            OSError: the file cannot be written.
        """
        lines = "".join(
            json.dumps([key.job_id, key.attempt_id, _pairs(each.logs), _pairs(each.outputs)]) + "\n"
            for key, each in files.items()
        )
        is_first = not self.by_key
        self.by_key.update(files)  # also if the file cannot be written: this runner needs them
        if is_first:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lines)

    def files(self, key: AttemptKey) -> AttemptFiles:
        """Return the files of an attempt; none if it was not recorded."""
        return self.by_key.get(key, AttemptFiles())

    def read_from(self, path: Path, keys: Iterable[AttemptKey]) -> None:
        """Learn the files of attempts from the file of a dead runner."""
        wanted = set(keys)
        with suppress(OSError), path.open(encoding="utf-8") as file:
            for line in file:
                with suppress(ValueError, TypeError):  # a line that the dead runner wrote in part
                    job_id, attempt_id, logs, outputs = json.loads(line)
                    if (key := AttemptKey(job_id, attempt_id)) in wanted:
                        self.by_key[key] = AttemptFiles(_read(logs), _read(outputs))

    def forget(self, key: AttemptKey) -> None:
        """Forget an attempt whose end was reported; it stays in the file, for the next runner."""
        self.by_key.pop(key, None)

    def remove(self) -> None:
        """Remove the file."""
        remove_records(self.path)


def remove_records(path: Path) -> None:
    """Remove a file of records, and its folder if that is empty."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        os.rmdir(path.parent)  # noqa: PTH106 - fails while other launchers use it


def _pairs(pairs: Iterable[FilePair]) -> list[list[str]]:
    return [[pair.local, pair.remote] for pair in pairs]


def _read(pairs: Iterable[Any]) -> tuple[FilePair, ...]:
    return tuple(FilePair(str(local), str(remote)) for local, remote in pairs)
