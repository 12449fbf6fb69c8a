"""Texts about attempts of jobs in lists and reports: how one ended, its memory, its last line of standard error."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.models.attempt_logs import AttemptLogs, attempt_logs, output_dir_of
from torc_framework.models.exits import ExitClass
from torc_framework.models.progress import JobEnding
from torc_framework.models.records import ComputeNodeRecord, ResultRecord
from torc_framework.models.result_observations import stdio_of_result
from torc_framework.text.quantities import size_text

DEFAULT_FOLDER: Final = Path("output")
"""Output directory if the runner's record names none that exists on this machine."""
_TAIL_BYTES: Final = 1 << 14
_PLAIN: Final = (ExitClass.USER_ERROR, ExitClass.SIGNALED, ExitClass.UNKNOWN, ExitClass.SUCCESS)
"""Classes of which code or signal says more than the class."""
CLASS_WORDS: Final = {
    ExitClass.OOM: "out of memory",
    ExitClass.TIMEOUT: "out of time",
    ExitClass.LAUNCH_FAILURE: "not started",
    ExitClass.OUTPUT_MISSING: "no output file",
}
"""Words for classes of endings where the class itself, with blanks, is none."""


def exit_text(result: ResultRecord | JobEnding | None) -> str:
    """Return how an attempt ended, such as ``code 3``, ``SIGSEGV`` or ``out of memory``; empty if it succeeded."""
    if result is None or result.status == "completed":
        return ""
    known = ExitClass(result.exit_class) if result.exit_class in set(ExitClass) else ExitClass.UNKNOWN
    if known not in _PLAIN:
        return CLASS_WORDS.get(known, known.value.replace("_", " "))
    if result.signal is not None:
        return signal_name(result.signal)
    return f"code {result.return_code if result.exit_code is None else result.exit_code}"


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def peak_text(result: ResultRecord | None) -> str:
    """Return the peak memory of an attempt; ``<9.6 MiB`` where only a bound is known, empty where nothing is."""
    if result is None:
        return ""
    observation = result.observation if isinstance(result.observation, dict) else {}
    raw = observation.get("raw")
    bound = raw.get("peak_memory_below_bytes") if isinstance(raw, dict) else None
    if result.peak_memory_bytes is None and bound is not None:
        return f"<{size_text(bound)}"
    return size_text(result.peak_memory_bytes) if result.peak_memory_bytes else ""


def log_finder(client: TorcClient) -> Callable[[ResultRecord], AttemptLogs]:
    """Return a function that returns the logs of an attempt; each runner's record is queried once."""
    folders: dict[int, Path] = {}

    def find(result: ResultRecord) -> AttemptLogs:
        node_id = result.compute_node_id
        if node_id not in folders:
            folders[node_id] = _folder(client.find(ComputeNodeRecord, workflow_id=result.workflow_id), node_id)
        folder = folders[node_id]
        attempt = result.workflow_id, result.job_id, result.run_id, result.attempt_id
        return attempt_logs(folder, *attempt, stdio=stdio_of_result(result))

    return find


def _folder(nodes: Sequence[ComputeNodeRecord], node_id: int) -> Path:
    node = next((each for each in nodes if each.id == node_id), None)
    found = None if node is None else output_dir_of(node)
    return found if found is not None and found.is_dir() else DEFAULT_FOLDER


def last_line(logs: AttemptLogs) -> str:
    """Return the last line of standard error that has content; empty if there is none or it cannot be read."""
    try:
        if logs.stderr is None or not logs.stderr.is_file():  # opening a pipe would block
            return ""
        with logs.stderr.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read(_TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def shown_path(path: Path) -> str:
    """Return a path as a person types it: relative to the current folder if it is below that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
