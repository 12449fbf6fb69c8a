"""Messages of ``srun -v`` about its step: the step's id, its start, the wait status of each task.

Sources: Slurm's ``src/srun`` (``launch.c``, ``step_ctx.c``) and ``src/api/step_launch.c``, and recordings of Slurm
22.05.8. Messages without a handler have no effect, but the last of them are kept for people.
"""

import os
import re
from collections.abc import Callable
from typing import Final

from attrs import Factory, define

from torc_slurm.processes.instants import Instant

OOM_SIGNAL: Final = 125
"""Slurm's number in place of the signal of a task that the kernel killed for lack of memory (``SIG_OOM``)."""
KEPT_LINES: Final = 12
_PREFIX: Final = re.compile(r"^(?:srun|slurmstepd\S*): (?:error: |fatal: )?")
_UNINFORMATIVE: Final = re.compile(
    r"^srun: (?:defined options|end of defined options|-{5,}|\S[^:]{0,24}\s*: |jobid \d+: nodes|route/|topology/|"
    r"launch/|launching |_task_|Received task exit|cpu-freq|Consumable Resources|cons_|select/|CpuBindType)"
)


@define
class SrunMessages:
    """The messages of a step's srun so far.

    Attributes:
        step_id: ``JOB.STEP``, once it exists.
        started: When srun reported the start of the first task.
        statuses: Wait statuses of tasks in the order of their ends, each with its number of tasks.
        node_failure: The message about a lost node.
        out_of_memory: srun reported that memory ran out.
        aborted: srun reported that Slurm ends the step, as it does when it ends the allocation.
        errors: Error messages.
        last_lines: The last informative lines.
    """

    step_id: str | None = None
    started: Instant | None = None
    statuses: list[tuple[int, int]] = Factory(list)
    node_failure: str | None = None
    out_of_memory: bool = False
    aborted: bool = False
    errors: list[str] = Factory(list)
    last_lines: list[str] = Factory(list)
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Process data of srun's standard error; no data is the end of the file."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._line(line.decode(errors="replace").rstrip())

    def _line(self, line: str) -> None:
        for pattern, take in _MESSAGE_HANDLERS:
            if match := pattern.search(line):
                take(self, match)
        if line.startswith(("srun: error: ", "srun: fatal: ")) and len(self.errors) < KEPT_LINES:
            self.errors.append(_PREFIX.sub("", line))
        if line and not _UNINFORMATIVE.match(line):
            self.last_lines = [*self.last_lines[1 - KEPT_LINES :], line]

    @property
    def decisive_status(self) -> int | None:
        """The wait status of the step: the first that is not 0, else 0; None if srun reported none."""
        return next((status for status, _ in self.statuses if status), 0 if self.statuses else None)

    @property
    def code(self) -> int | None:
        """The exit code in that wait status."""
        status = self.decisive_status
        return os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None

    @property
    def signal(self) -> int | None:
        """The signal in that wait status."""
        status = self.decisive_status
        if status is None or not os.WIFSIGNALED(status) or os.WTERMSIG(status) == OOM_SIGNAL:
            return None
        return os.WTERMSIG(status)

    @property
    def core_dumped(self) -> bool:
        """Whether that wait status reports a core file."""
        return self.signal is not None and os.WCOREDUMP(self.decisive_status or 0)


def _on_task_start(messages: SrunMessages, _match: re.Match[str]) -> None:
    messages.started = messages.started or Instant.now()


def _on_task_exit(messages: SrunMessages, match: re.Match[str]) -> None:
    status = int(match["status"], 16)
    messages.statuses.append((status, int(match["tasks"])))
    messages.out_of_memory = messages.out_of_memory or status & 0x7F == OOM_SIGNAL


def _on_step_id(messages: SrunMessages, match: re.Match[str]) -> None:
    messages.step_id = messages.step_id or match["step"]


def _on_node_failure(messages: SrunMessages, match: re.Match[str]) -> None:
    messages.node_failure = messages.node_failure or match[0]


def _on_out_of_memory(messages: SrunMessages, _match: re.Match[str]) -> None:
    messages.out_of_memory = True


def _on_abort(messages: SrunMessages, _match: re.Match[str]) -> None:
    messages.aborted = True


_MESSAGE_HANDLERS: Final[tuple[tuple[re.Pattern[str], Callable[[SrunMessages, re.Match[str]], None]], ...]] = (
    (re.compile(r"^srun: .*\b(?:launching|for) (?:.* )?(?:StepId=|step )?(?P<step>\d+\.\d+)\b"), _on_step_id),
    (re.compile(r"^srun: .*\bNode \S+, \d+ tasks? started"), _on_task_start),
    (
        re.compile(
            r"^srun: .*task exit notification for (?P<tasks>\d+) tasks? .*\(status=0x(?P<status>[0-9a-fA-F]{1,8})\)"
        ),
        _on_task_exit,
    ),
    (re.compile(r"^srun: Job step aborted"), _on_abort),
    (re.compile(r"Node failure on \S+"), _on_node_failure),
    (re.compile(r"^srun: error: .*: task[s]? .*: Out Of Memory$"), _on_out_of_memory),
)
