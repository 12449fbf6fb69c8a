"""Where the output of attempts goes: the setting of workflow and job, and what follows from it for their log files."""

from typing import Final, Literal, Protocol

from attrs import frozen

StdioMode = Literal["separate", "combined", "no_stdout", "no_stderr", "none"]
"""Files of an attempt's output: one for each stream, one for both in the order of writing, or not those of a stream."""
_WITHOUT_STDOUT: Final = ("no_stdout", "none")
_WITHOUT_STDERR: Final = ("no_stderr", "none")
_STREAMS: Final = {"stdout": "standard output", "stderr": "standard error"}


class StdioFields(Protocol):
    """A record of a workflow or of a job, as far as its output is concerned; None is not set."""

    stdio: StdioMode | None
    delete_stdio_on_success: bool | None


@frozen
class Stdio:
    """Where the output of an attempt goes.

    Attributes:
        mode: Which files it has.
        delete_on_success: They are deleted once the server has stored that the attempt completed.
    """

    mode: StdioMode = "separate"
    delete_on_success: bool = False

    @property
    def keeps_stdout(self) -> bool:
        """Whether standard output goes to a file."""
        return self.mode not in _WITHOUT_STDOUT

    @property
    def keeps_stderr(self) -> bool:
        """Whether standard error goes to a file: its own, or that of standard output."""
        return self.mode not in _WITHOUT_STDERR

    @property
    def is_combined(self) -> bool:
        """Whether both streams go to one file."""
        return self.mode == "combined"

    def over(self, mode: StdioMode | None, *, delete_on_success: bool | None) -> "Stdio":
        """Return this setting with what a job sets itself; None leaves this."""
        if mode is None and delete_on_success is None:
            return self
        return Stdio(
            self.mode if mode is None else mode,
            self.delete_on_success if delete_on_success is None else delete_on_success,
        )

    def not_kept(self, stream: Literal["stdout", "stderr"]) -> str:
        """Return that a stream goes to no file, and by which setting."""
        return f"{_STREAMS[stream]} is not kept (stdio: {self.mode})"


SEPARATE: Final = Stdio()
"""The setting where neither workflow nor job has one."""
DELETED: Final = "the logs were deleted because the job completed (delete_stdio_on_success)"


def stdio_of(workflow: StdioFields, job: StdioFields | None = None) -> Stdio:
    """Return the setting of a job: each of the two fields is the job's, else the workflow's, else the default."""
    setting = SEPARATE.over(workflow.stdio, delete_on_success=workflow.delete_stdio_on_success)
    return setting if job is None else setting.over(job.stdio, delete_on_success=job.delete_stdio_on_success)
