"""What ``srun -v`` says while a step lives: the step's number, its start, the wait status of each task.

Sources: messages of Slurm's ``src/srun`` (``launch.c``, ``step_ctx.c``) and ``src/api/step_launch.c``, and
recordings of 22.05.8. Words that are not in the table are kept, and decide nothing.
"""

import os
import re
from collections.abc import Callable
from typing import Final

from attrs import Factory, define

from torc_slurm.processes.instants import Instant

OOM_SIGNAL: Final = 125
"""Number that Slurm puts in place of the signal where the kernel killed for lack of memory (``SIG_OOM``)."""
KEPT_LINES: Final = 12
_PREFIX: Final = re.compile(r"^(?:srun|slurmstepd\S*): (?:error: |fatal: )?")
_UNINFORMATIVE: Final = re.compile(
    r"^srun: (?:defined options|end of defined options|-{5,}|\S[^:]{0,24}\s*: |jobid \d+: nodes|route/|topology/|"
    r"launch/|launching |_task_|Received task exit|cpu-freq|Consumable Resources|cons_|select/|CpuBindType)"
)


@define
class SrunMessages:
    """What a step's srun has said so far.

    Attributes:
        step_id: ``JOB.STEP``, once it exists.
        started: When it told that the first task was started.
        waits: It waits for room in the allocation.
        statuses: Wait statuses of tasks, in the order in which they ended, and of how many tasks each.
        node_failure: The sentence by which it told that a node was lost.
        out_of_memory: It told that memory ran out.
        aborted: It told that Slurm ends the step, as it does when it ends the allocation.
        complaints: Its errors.
        last: Its last lines that say anything.
    """

    step_id: str | None = None
    started: Instant | None = None
    waits: bool = False
    statuses: list[tuple[int, int]] = Factory(list)
    node_failure: str | None = None
    out_of_memory: bool = False
    aborted: bool = False
    complaints: list[str] = Factory(list)
    last: list[str] = Factory(list)
    _rest: bytes = b""

    def hear(self, data: bytes) -> None:
        """Take in what was read from its standard error; no data is the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._line(line.decode(errors="replace").rstrip())

    def _line(self, line: str) -> None:
        for pattern, take in _MESSAGE_HANDLERS:
            if match := pattern.search(line):
                take(self, match)
        if line.startswith(("srun: error: ", "srun: fatal: ")) and len(self.complaints) < KEPT_LINES:
            self.complaints.append(_PREFIX.sub("", line))
        if line and not _UNINFORMATIVE.match(line):
            self.last = [*self.last[1 - KEPT_LINES :], line]

    @property
    def decisive(self) -> int | None:
        """The wait status that tells how the step ended: the first that is not 0, else 0; None if none was told."""
        return next((status for status, _ in self.statuses if status), 0 if self.statuses else None)

    @property
    def code(self) -> int | None:
        """The exit code in that wait status."""
        status = self.decisive
        return os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None

    @property
    def signal(self) -> int | None:
        """The signal in that wait status."""
        status = self.decisive
        if status is None or not os.WIFSIGNALED(status) or os.WTERMSIG(status) == OOM_SIGNAL:
            return None
        return os.WTERMSIG(status)

    @property
    def core_dumped(self) -> bool:
        """That wait status tells of a core file."""
        return self.signal is not None and os.WCOREDUMP(self.decisive or 0)


def _on_task_start(words: SrunMessages, _match: re.Match[str]) -> None:
    words.started, words.waits = words.started or Instant.now(), False


def _on_task_exit(words: SrunMessages, match: re.Match[str]) -> None:
    status = int(match["status"], 16)
    words.statuses.append((status, int(match["tasks"])))
    words.out_of_memory = words.out_of_memory or status & 0x7F == OOM_SIGNAL


def _on_step_id(words: SrunMessages, match: re.Match[str]) -> None:
    words.step_id, words.waits = words.step_id or match["step"], False


def _on_wait(words: SrunMessages, _match: re.Match[str]) -> None:
    words.waits = True


def _on_node_failure(words: SrunMessages, match: re.Match[str]) -> None:
    words.node_failure = words.node_failure or match[0]


def _on_out_of_memory(words: SrunMessages, _match: re.Match[str]) -> None:
    words.out_of_memory = True


def _on_abort(words: SrunMessages, _match: re.Match[str]) -> None:
    words.aborted = True


_MESSAGE_HANDLERS: Final[tuple[tuple[re.Pattern[str], Callable[[SrunMessages, re.Match[str]], None]], ...]] = (
    (re.compile(r"^srun: .*\b(?:launching|for) (?:.* )?(?:StepId=|step )?(?P<step>\d+\.\d+)\b"), _on_step_id),
    (re.compile(r"^srun: .*\bNode \S+, \d+ tasks? started"), _on_task_start),
    (
        re.compile(
            r"^srun: .*task exit notification for (?P<tasks>\d+) tasks? .*\(status=0x(?P<status>[0-9a-fA-F]{1,8})\)"
        ),
        _on_task_exit,
    ),
    (re.compile(r"^srun: .*step creation (?:temporarily|still) disabled"), _on_wait),
    (re.compile(r"^srun: Job step aborted"), _on_abort),
    (re.compile(r"Node failure on \S+"), _on_node_failure),
    (re.compile(r"^srun: error: .*: task[s]? .*: Out Of Memory$"), _on_out_of_memory),
)
