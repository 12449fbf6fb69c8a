"""The last lines of an attempt's standard error, as every report on failures shows them."""

import os
import re
from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.forensics.log_excerpts import read_last_lines, visible_text
from torc_framework.models.exits import ExitClass
from torc_framework.models.stdio import Stdio
from torc_framework.text.terminal import one_line

SHOWN_LINES: Final = 5
"""Most lines of a log that are shown."""
LINE_LENGTH: Final = 200
"""Most characters of each of them."""
NEVER_BEGAN: Final = frozenset({ExitClass.LAUNCH_FAILURE.value, ExitClass.IMAGE_PULL.value})
"""Classes of endings of jobs whose command never began; such an attempt may have no logs."""
NO_OUTPUT: Final = "there is no output, because the job never began"
_READ_LINES: Final = 60
"""Lines at the end of a log among which those with text are searched."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@frozen
class LogTail:
    """The last lines of a log.

    Attributes:
        path: The log; None if the stream goes to no file.
        lines: Its last lines with text, at most `SHOWN_LINES`, each at most `LINE_LENGTH` characters, without colours
            and overwritten text, with control characters escaped.
        trouble: Why the log could not be read; None if it was read.
        is_expected: There is such a log. Otherwise `trouble` says why there is none: the stream goes to no file, or the
            job never began.
    """

    path: Path | None
    lines: tuple[str, ...] = ()
    trouble: str | None = None
    is_expected: bool = True

    @property
    def last(self) -> str | None:
        """The last line; None if there is none."""
        return self.lines[-1] if self.lines else None


def read_stderr_tail(
    path: Path | None, stdio: Stdio, *, hostname: str | None = None, exit_class: str | None = None
) -> LogTail:
    """Return the last lines of the standard error of an attempt.

    Args:
        path: Its log, which may be that of both streams; None if it goes to no file.
        stdio: Where its output goes.
        hostname: The machine of the runner that wrote it, if it is known. A log that this machine does not have is
            then said to be there.
        exit_class: Class of the attempt's ending.
    """
    if path is None:
        return LogTail(None, trouble=stdio.not_kept("stderr"), is_expected=False)
    try:
        raw, _ = read_last_lines(path, _READ_LINES)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            if exit_class in NEVER_BEGAN:
                return LogTail(path, trouble=NO_OUTPUT, is_expected=False)
            elsewhere = hostname is not None and hostname != os.uname().nodename
            return LogTail(path, trouble=f"it is on {hostname}" if elsewhere else "the file does not exist")
        return LogTail(path, trouble=error.strerror or str(error))
    texts = [text for line in raw if (text := _shown_line(line))]
    return LogTail(path, tuple(texts[-SHOWN_LINES:]))


def _shown_line(line: bytes) -> str:
    text = one_line(_COLOURS.sub("", visible_text(line)).expandtabs(4).rstrip())
    return text if len(text) <= LINE_LENGTH else text[: LINE_LENGTH - 1].rstrip() + "…"
