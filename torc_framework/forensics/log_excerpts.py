"""Excerpts of logs of attempts: the lines that match patterns, and the ends of files of any size and encoding."""

import errno
import io
import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.forensics.line_ranking import LineRank, RankedLine, most_informative, rank_line
from torc_framework.logs.pattern_scanner import PatternScanner
from torc_framework.models.attempt_logs import AttemptLogs, attempt_logs, output_dir_of
from torc_framework.models.log_patterns import LogPattern
from torc_framework.models.records import ComputeNodeRecord, ResultRecord
from torc_framework.models.result_observations import stdio_of_result

END_BYTES: Final = 1 << 15
"""Bytes at the end of a log in which every line is ranked."""
END_LINES: Final = 60
"""Most lines of the end that are ranked."""
MAX_MATCHES: Final = 50
"""Most lines with a pattern that are kept from before the end of a log."""
CHUNK_BYTES: Final = 1 << 20
DEFAULT_FOLDER: Final = Path("output")
NO_LOGS: Final = "its output is not kept (stdio: none)"
"""Trouble of the excerpt of an attempt that has no logs."""


@frozen
class Excerpt:
    """Ranked lines of a log.

    Attributes:
        path: The file.
        lines: The lines, in order.
        first_byte: The byte at which line 1 begins; 0 if the numbers of the lines are those of the file.
        trouble: Why the file could not be read; None if it was read.
    """

    path: Path
    lines: tuple[RankedLine, ...] = ()
    first_byte: int = 0
    trouble: str | None = None

    @property
    def best(self) -> RankedLine | None:
        """The line of the highest rank."""
        return most_informative(self.lines)


class LogExcerptReader:
    """Reads excerpts of the logs of attempts.

    Args:
        patterns: Patterns of log lines; on each line the first that matches counts.
        nodes: The runners that held the attempts, by id.
        output_dir: Output directory; by default the one in the runner's record, if it exists on this machine, else
            ``output``.
    """

    def __init__(
        self, patterns: list[LogPattern], nodes: Mapping[int, ComputeNodeRecord], output_dir: Path | None = None
    ) -> None:
        self._scanner = PatternScanner(patterns)
        self._folders = {node_id: output_dir or _folder(node) for node_id, node in nodes.items()}
        self._default = output_dir or DEFAULT_FOLDER

    def logs(self, result: ResultRecord) -> AttemptLogs:
        """Return the files of standard error and standard output of an attempt."""
        folder = self._folders.get(result.compute_node_id, self._default)
        attempt = result.workflow_id, result.job_id, result.run_id, result.attempt_id
        return attempt_logs(folder, *attempt, stdio=stdio_of_result(result))

    def paths(self, result: ResultRecord) -> tuple[Path, ...]:
        """Return the different files that an attempt has for its output, that of standard error first."""
        logs = self.logs(result)
        return tuple(dict.fromkeys(path for path in (logs.stderr, logs.stdout) if path is not None))

    def read_log(self, path: Path) -> Excerpt:
        """Return the lines of a log that match patterns, and those of its end."""
        end = self.read_end(path)
        if end.trouble is not None:
            return end
        before = _lines_before(path, end.first_byte)
        last = {before + line.number: _with_number(line, before) for line in end.lines}
        known: deque[RankedLine] = deque(maxlen=MAX_MATCHES)
        try:
            with path.open("rb") as log:
                hits = (rank_line(hit.line, hit.text, hit.pattern) for hit in self._scanner.hits(log))
                known.extend(line for line in hits if line is not None)
        except OSError as error:
            return Excerpt(path, trouble=error.strerror or str(error))
        last.update({line.number: line for line in known})
        return Excerpt(path, tuple(last[number] for number in sorted(last)))

    def read_end(self, path: Path) -> Excerpt:
        """Return the lines of the end of a log, undecodable bytes replaced. Only a regular file is read."""
        try:
            raw, first = read_last_lines(path, END_LINES)
        except OSError as error:
            return Excerpt(path, trouble=error.strerror or str(error))
        return Excerpt(path, tuple(self._rank_lines(raw)), first)

    def _rank_lines(self, raw: list[bytes]) -> Iterator[RankedLine]:
        """Yield ranked lines; patterns are matched with the exceptions only, if there are any."""
        lines = [found for number, line in enumerate(raw, 1) if (found := rank_line(number, visible_text(line)))]
        asked = [line for line in lines if line.rank is LineRank.EXCEPTION][-1:] or lines
        known = {hit.line: hit.pattern for hit in self._scanner.hits(_file(asked))}
        patterns = {line.number: known.get(position) for position, line in enumerate(asked, 1)}
        for line in lines:
            yield rank_line(line.number, line.text, patterns.get(line.number)) or line

    def read_decisive_end(self, result: ResultRecord) -> Excerpt:
        """Return the more informative end of an attempt's logs; it has trouble only if none can be read.

        Standard output is chosen only if standard error has no line of rank KNOWN or above.
        """
        paths = self.paths(result)
        if not paths:
            return Excerpt(Path(os.devnull), trouble=NO_LOGS)
        chosen, output = self.read_end(paths[0]), paths[-1]
        if len(paths) == 1:
            return chosen
        if chosen.best is None or chosen.best.rank < LineRank.KNOWN:
            other = self.read_end(output)
            if other.best is not None and (
                chosen.best is None or other.best.rank > max(chosen.best.rank, LineRank.WORDY)
            ):
                return other
            if chosen.trouble is not None and other.trouble is None:
                return other
        return chosen

    def with_line_number(self, excerpt: Excerpt) -> RankedLine | None:
        """Return the line of the highest rank with its number in the file."""
        best = excerpt.best
        return best and _with_number(best, _lines_before(excerpt.path, excerpt.first_byte))


def read_last_lines(path: Path, most: int) -> tuple[list[bytes], int]:
    """Return the last complete lines of a log, at most those in its last `END_BYTES`, and the byte of the first.

    Raises:
        OSError: the file cannot be read, or it is not a regular file.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        first = max(0, facts.st_size - END_BYTES)
        content = os.pread(file, END_BYTES, first)
    finally:
        os.close(file)
    if first and (cut := content.find(b"\n") + 1):
        first, content = first + cut, content[cut:]  # the first line is incomplete
    raw = content.split(b"\n")
    skipped = raw[: max(0, len(raw) - most - (raw[-1] == b""))]
    return raw[len(skipped) :], first + sum(len(line) + 1 for line in skipped)


def _file(lines: list[RankedLine]) -> io.BytesIO:
    return io.BytesIO("\n".join(line.text for line in lines).encode("utf-8", "replace"))


def _with_number(line: RankedLine, before: int) -> RankedLine:
    return RankedLine(line.number + before, line.text, line.rank, line.pattern, line.hint)


def visible_text(line: bytes) -> str:
    """Return a line as a terminal shows it: without the text that a carriage return overwrote."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")


def _lines_before(path: Path, first_byte: int) -> int:
    """Return the number of lines before a byte of a log, read in chunks."""
    count, left = 0, first_byte
    if not left:
        return 0
    try:
        with path.open("rb") as file:
            while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
                count += chunk.count(b"\n")
                left -= len(chunk)
    except OSError:
        return 0
    return count


def _folder(node: ComputeNodeRecord) -> Path:
    """Return the output directory of a runner, if it exists on this machine."""
    folder = output_dir_of(node)
    return folder if folder is not None and folder.is_dir() else DEFAULT_FOLDER
