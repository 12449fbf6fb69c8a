"""The commands of ``torc`` that readers can give, with their options; one entry makes one command."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from torc_framework.monitoring.refusals import RefusedError

OptionKind = Literal["flag", "int", "float", "text", "path", "ids", "spec", "format", "spec_path"]
SPEC_BYTES: Final = 16 << 20
"""Longest spec that is sent as text."""
_MAX_TEXT: Final = 2_000
_MAX_IDS: Final = 10_000
_SPEC_KINDS: Final = ("spec", "format", "spec_path")
"""Kinds of options that become no flags: the spec is the last argument."""
FORMATS: Final = ("yaml", "json", "json5", "kdl")
"""Formats of a spec, which are also the suffixes of its file."""


@frozen
class OrderOption:
    """One option of a command.

    Attributes:
        name: Its name in an order; the flag is that with dashes.
        kind: Kind of its value; ``ids`` are arguments, ``path`` is absolute.
    """

    name: str
    kind: OptionKind
    help: str

    def words(self, value: Any) -> list[str]:
        """Return the words of the command line for a value.

        Raises:
            RefusedError: the value is of another kind (400).
        """
        if not _CHECKS[self.kind](value):
            raise RefusedError(400, f"{self.name} is {str(value)[:100]!r}; expected {_EXPECTED[self.kind]}")
        if self.kind == "ids":
            return [str(each) for each in value]
        flag = f"--{self.name.replace('_', '-')}"
        if self.kind == "flag":
            return [flag] if value else []
        return [f"{flag}={value}"]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()


def _is_path(value: Any) -> bool:
    return _is_text(value) and Path(value).is_absolute()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 10**12


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_IDS and all(_is_id(each) for each in value)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63


_CHECKS: Final[Mapping[OptionKind, Callable[[Any], bool]]] = {
    "flag": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and _is_number(value),
    "float": _is_number,
    "text": _is_text,
    "path": _is_path,
    "spec_path": _is_path,
    "ids": _is_ids,
    "spec": lambda value: isinstance(value, str) and len(value.encode("utf-8", "replace")) <= SPEC_BYTES,
    "format": lambda value: value in FORMATS,
}
_EXPECTED: Final[Mapping[OptionKind, str]] = {
    "flag": "true or false",
    "int": "a whole number",
    "float": "a number",
    "text": f"one line of {_MAX_TEXT} characters at most",
    "path": "an absolute path",
    "spec_path": "an absolute path",
    "ids": f"a list of {_MAX_IDS} ids at most",
    "spec": f"a text of {SPEC_BYTES} bytes at most",
    "format": " or ".join(FORMATS),
}


@frozen
class OfferedCommand:
    """One command.

    Attributes:
        title: What its button says.
        words: Words of the command line; ``{id}`` stands for the workflow.
        preview: ``dry_run``: the command has that flag; ``impact``: the workflow's counts are the preview.
        destroys: It deletes records, or stops jobs.
        is_long: It may take days, and its output is text.
        needs_workflow: It is about one workflow.
        undo: How it is undone, or that it cannot be; empty if it changes nothing.
    """

    name: str
    title: str
    words: Sequence[str]
    options: Sequence[OrderOption] = field(default=(), kw_only=True)
    preview: Literal["dry_run", "impact"] | None = field(default=None, kw_only=True)
    destroys: bool = field(default=False, kw_only=True)
    is_long: bool = field(default=False, kw_only=True)
    needs_workflow: bool = field(default=True, kw_only=True)
    confirms: bool = field(default=False, kw_only=True)
    undo: str = field(default="", kw_only=True)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "preview": self.preview,
            "destroys": self.destroys,
            "is_long": self.is_long,
            "needs_workflow": self.needs_workflow,
            "undo": self.undo,
            "options": [{"name": each.name, "kind": each.kind, "help": each.help} for each in self.options],
        }

    def arguments(self, workflow_id: int | None, options: Mapping[str, Any], *, dry_run: bool) -> list[str]:
        """Return the arguments of the program ``torc``.

        Raises:
            RefusedError: an option is not known, or its value is of another kind (400).
        """
        known = {each.name: each for each in self.options}
        for name in options:
            if name not in known:
                raise RefusedError(
                    400, f"{self.name} has no option {name[:100]!r}; it has {', '.join(known) or 'none'}"
                )
        found = [word.format(id=workflow_id) for word in self.words]
        given = [known[name] for name in known if name in options and options[name] is not None]
        for option in sorted(given, key=lambda each: each.kind != "ids"):  # arguments come before flags
            if option.kind not in _SPEC_KINDS:
                found += option.words(options[option.name])
        if dry_run:
            return [*found, "--dry-run"]
        return [*found, "--yes"] if self.confirms else found


def _option(name: str, kind: OptionKind, help_: str) -> OrderOption:
    return OrderOption(name, kind, help_)


_FORCE: Final = _option("force", "flag", "Also with inputs missing, and with jobs that active runners hold.")
_OUTPUT_DIR: Final = _option("output_dir", "path", "Folder for logs.")
_REASON: Final = _option("reason", "text", "Why; kept with the verdict.")
_JOBS: Final = _option("jobs", "ids", "Ids of jobs; all that wait without it.")
_NEW_RUN: Final = "There is no undo; the results and logs of earlier runs are kept."
_STOPS: Final = "Cancel workflow stops it; what jobs wrote until then stays."
_RETRIED: Final = "There is no undo, but failed and canceled jobs can be retried."
_MULTIPLIERS: Final = (
    _option("memory_multiplier", "float", "Factor by which memory grows after a job ran out of it."),
    _option("runtime_multiplier", "float", "Factor by which run time grows after a time-out."),
    _option("retry_unknown", "flag", "Also run jobs again whose failures no policy explains."),
)

COMMANDS: Final[Mapping[str, OfferedCommand]] = {
    command.name: command
    for command in (
        OfferedCommand(
            "initialize",
            "Initialize",
            ("workflows", "initialize", "{id}"),
            options=(_FORCE,),
            preview="dry_run",
            destroys=True,
            confirms=True,
            undo="There is no undo.",
        ),
        OfferedCommand(
            "reinitialize",
            "Reinitialize",
            ("workflows", "reinitialize", "{id}"),
            options=(_FORCE,),
            preview="dry_run",
            undo=_NEW_RUN,
        ),
        OfferedCommand(
            "reset_status",
            "Reset",
            ("workflows", "reset-status", "{id}"),
            options=(
                _option("failed_only", "flag", "Only jobs that failed, were canceled or terminated, and what follows."),
                _option("reinitialize", "flag", "Also reinitialize, so that they can run."),
                _FORCE,
            ),
            preview="impact",
            destroys=True,
            confirms=True,
            undo="There is no undo: the present statuses of the jobs are not kept.",
        ),
        OfferedCommand(
            "run",
            "Run here",
            ("run", "{id}"),
            options=(
                _option("max_parallel_jobs", "int", "At most this many jobs at once; resources are ignored."),
                _option("num_cpus", "int", "CPUs to offer; by default all."),
                _option("memory_gb", "float", "Memory to offer, GiB; by default all."),
                _option("num_gpus", "int", "GPUs to offer; by default all."),
                _option("time_limit", "text", "Stop after, such as PT2H."),
                _option("executor", "text", "Executor that runs the jobs."),
                _option("retry_failed", "flag", "First make failed jobs ready again, and what follows them."),
                _OUTPUT_DIR,
            ),
            is_long=True,
            preview="impact",
            undo=_STOPS,
        ),
        OfferedCommand(
            "submit",
            "Submit",
            ("submit", "{id}"),
            options=(
                _option("ignore_missing_data", "flag", "Also with input files or user data missing."),
                _OUTPUT_DIR,
            ),
            preview="impact",
            undo="Cancel workflow releases the nodes and stops the jobs.",
        ),
        OfferedCommand(
            "watch",
            "Watch and recover",
            ("watch", "{id}"),
            options=(
                _option("recover", "flag", "Recover it from failures."),
                _option("max_retries", "int", "Most recoveries."),
                *_MULTIPLIERS,
                _OUTPUT_DIR,
            ),
            is_long=True,
            preview="impact",
            undo="Stopping it changes no job.",
        ),
        OfferedCommand(
            "cancel", "Cancel workflow", ("workflows", "cancel", "{id}"), preview="impact", destroys=True, undo=_RETRIED
        ),
        OfferedCommand(
            "archive",
            "Archive",
            ("workflows", "archive", "true", "{id}"),
            preview="impact",
            undo="Take out of the archive undoes it.",
        ),
        OfferedCommand(
            "unarchive",
            "Take out of the archive",
            ("workflows", "archive", "false", "{id}"),
            preview="impact",
            undo="Archive undoes it.",
        ),
        OfferedCommand(
            "delete",
            "Delete",
            ("workflows", "delete", "{id}"),
            options=(_option("force", "flag", "Also workflows of other users, and with jobs that run."),),
            preview="impact",
            destroys=True,
            confirms=True,
            undo="There is no undo. Export keeps a copy.",
        ),
        OfferedCommand(
            "recover",
            "Recover",
            ("recover", "{id}"),
            options=(*_MULTIPLIERS, _OUTPUT_DIR),
            preview="dry_run",
            undo=_NEW_RUN,
        ),
        OfferedCommand(
            "pending_retry",
            "Retry",
            ("pending", "retry", "{id}"),
            options=(
                _JOBS,
                _REASON,
                _option("memory", "text", "New memory, such as 16g."),
                _option("runtime", "text", "New run time, ISO 8601, such as PT4H."),
                _option("num_cpus", "int", "New CPU cores."),
                _option("num_gpus", "int", "New GPUs."),
            ),
            preview="dry_run",
            undo=_NEW_RUN,
        ),
        OfferedCommand(
            "pending_fail",
            "Let fail",
            ("pending", "fail", "{id}"),
            options=(_JOBS, _REASON),
            preview="dry_run",
            destroys=True,
            undo=_RETRIED,
        ),
        OfferedCommand(
            "sync_status",
            "Fail jobs of lost runners",
            ("workflows", "sync-status", "{id}"),
            preview="dry_run",
            undo=_RETRIED,
        ),
        OfferedCommand(
            "create",
            "Create",
            ("workflows", "create"),
            options=(
                _option("text", "spec", "The spec."),
                _option("format", "format", "Its format."),
                _option("path", "spec_path", "Or the path of a spec file on this machine."),
                _option("no_resource_monitoring", "flag", "No samples."),
                _option("skip_checks", "flag", "Skip the checks of scheduler nodes."),
            ),
            preview="dry_run",
            needs_workflow=False,
            undo="Delete undoes it, except for what its jobs have done.",
        ),
        OfferedCommand("execution_plan", "Execution plan", ("workflows", "execution-plan", "{id}")),
        OfferedCommand(
            "slurm_logs",
            "Search Slurm logs",
            ("slurm", "parse-logs", "{id}"),
            options=(_option("errors_only", "flag", "Leave out warnings."), _OUTPUT_DIR),
        ),
        OfferedCommand("slurm_accounting", "Slurm accounting", ("slurm", "sacct", "{id}")),
        OfferedCommand(
            "utilization",
            "Use of resources",
            ("reports", "check-resource-utilization", "{id}"),
            options=(_option("include_failed", "flag", "Include failed and terminated attempts."),),
        ),
        OfferedCommand("settings", "Settings", ("config", "show"), needs_workflow=False),
    )
}
"""All commands by name."""
