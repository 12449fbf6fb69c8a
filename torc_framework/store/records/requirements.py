"""Resource requirements: amounts as numbers, the default record, the order of claims; checks of shells and options."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.executor_options import options_problem
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.resources import Resources, parse_duration, parse_memory
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import RuleError
from torc_framework.store.tables.core import RESOURCE_REQUIREMENTS
from torc_framework.supervision.shells import shell_words

DEFAULT_REQUIREMENTS: Final = "default"
"""Name of the requirements that every workflow has, for jobs that refer to none."""

SORT_KEYS: Final[Mapping[str, Callable[[Resources], tuple[float, ...]]]] = {
    "gpus_runtime_memory": lambda r: (-r.num_gpus, -(r.runtime_s or 0), -r.memory_bytes),
    "gpus_memory_runtime": lambda r: (-r.num_gpus, -r.memory_bytes, -(r.runtime_s or 0)),
    "none": lambda _: (),
}
"""Sort methods: the jobs with the smallest key are claimed first, among equal keys those with the smallest id."""


def check_sort_method(method: str | None) -> None:
    """Raise `RuleError` unless the sort method is known; None leaves the choice to the server."""
    if method is not None and method not in SORT_KEYS:
        raise RuleError(f"unknown sort method {method!r}; known: {', '.join(SORT_KEYS)}")


def check_shell(shell: str | None, of: str = "") -> None:
    """Raise `RuleError` unless a shell is a program with its options; None is the default shell.

    Args:
        of: Text before the message.
    """
    if shell is not None:
        try:
            shell_words(shell)
        except ValueError as error:
            raise RuleError(f"{of}{error}") from None


def check_executor_options(options: Any, of: str = "") -> None:
    """Raise `RuleError` unless a job's options of executors have the form and size that is allowed; None is none.

    Args:
        options: The options.
        of: Text before the message.
    """
    if options is not None and (problem := options_problem(options)) is not None:
        raise RuleError(f"{of}{problem}")


def parsed_requirements(record: ResourceRequirementsRecord) -> dict[str, int]:
    """Return the values of the columns that hold the texts of a record as numbers.

    Raises:
        RuleError: a text is not a memory size or not a duration, or an amount is negative.
    """
    for name in ("num_cpus", "num_gpus", "num_nodes"):
        if getattr(record, name) < 0:
            raise RuleError(f"resource requirements {record.name!r}: {name} must not be negative")
    try:
        return {"memory_bytes": parse_memory(record.memory), "runtime_s": parse_duration(record.runtime)}
    except ValueError as error:
        raise RuleError(f"resource requirements {record.name!r}: {error}") from error


def default_requirements(tx: Tx, workflow_id: int) -> int:
    """Return the id of the workflow's default requirements."""
    table = RESOURCE_REQUIREMENTS
    found = tx.connection.execute(
        sa.select(table.c.id).where(table.c.workflow_id == workflow_id, table.c.name == DEFAULT_REQUIREMENTS)
    )
    return int(found.scalar_one())
