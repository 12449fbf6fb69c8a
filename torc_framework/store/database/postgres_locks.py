"""The advisory locks of PostgreSQL that changes and the numbering of records take, and their order.

A change takes, in this order, and holds until its transaction ends:

1. the lock of the database: shared if the change concerns one workflow or a new one, alone otherwise;
2. the lock of its workflow, if it concerns one;
3. for a moment, the lock of a table's ids (`id_block`), in which it waits for nothing else.

A transaction that waits for a lock holds only locks that precede it in this order, and at most one of each kind, so no
transactions wait for each other in a circle. A change locks no rows of another workflow.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from torc_framework.store.database.base import NEW_WORKFLOW

_DATABASE: Final = 0x746F7263
"""Key of the lock of the database: "torc" in ASCII."""
_WORKFLOW: Final = 0x746F7277
"""First key of a workflow's lock: "torw" in ASCII; the second is the workflow's id."""
_IDS: Final = 0x746F7269
"""First key of the lock of a table's ids: "tori" in ASCII; the second is a hash of the table's name."""
_KEYS: Final = 2**31
"""Second keys have 31 bits; two workflows whose ids are so far apart would share a lock, and wait for each other."""


def write_locks(workflow_id: int | None, *, wait: bool = True) -> Iterator[str]:
    """Yield the statements that take the locks of a change, in their order.

    Args:
        workflow_id: See `Database.write`.
        wait: Wait for each lock; otherwise each statement returns whether it took the lock.
    """
    name = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    if workflow_id is None:
        yield f"SELECT {name}({_DATABASE})"
        return
    yield f"SELECT {name}_shared({_DATABASE})"
    if workflow_id != NEW_WORKFLOW:
        yield f"SELECT {name}({_WORKFLOW}, {workflow_id % _KEYS})"


def first_free_lock(workflow_ids: Sequence[int]) -> tuple[str, str]:
    """Return the statements that take the locks of a change of one of several workflows; the second returns its id.

    It is the first one whose lock is free. If none is, the second statement waits for the lock of the first one.
    ``COALESCE`` evaluates its second argument only if the first one is null ("Conditional Expressions" in PostgreSQL's
    manual), and the inner query ends with the first lock that it gets.
    """
    keys = ", ".join(str(workflow_id) for workflow_id in workflow_ids)
    first = workflow_ids[0]
    return (
        f"SELECT pg_advisory_xact_lock_shared({_DATABASE})",
        f"SELECT coalesce((SELECT id FROM unnest(ARRAY[{keys}]::bigint[]) AS id "
        f"WHERE pg_try_advisory_xact_lock({_WORKFLOW}, (id % {_KEYS})::int) LIMIT 1), "
        f"CASE WHEN pg_advisory_xact_lock({_WORKFLOW}, {first % _KEYS}) IS NULL THEN NULL ELSE {first} END)",
    )


def id_block(table: str) -> tuple[str, str]:
    """Return the statements that take consecutive ids from a table's sequence, to be run within a savepoint of its own.

    A sequence hands out one number at a time, also to others meanwhile, so the first statement takes a lock. The lock
    ends when the savepoint is undone ("Explicit Locking" in PostgreSQL's manual), not with the transaction, and a
    sequence keeps its value when a transaction is rolled back: ids of a change that is undone are not used again. The
    value of the second statement is the number of ids less one; it returns the last id.
    """
    sequence = f"'{table}_id_seq'"
    return (
        f"SELECT pg_advisory_xact_lock({_IDS}, {zlib.crc32(table.encode()) % _KEYS})",
        f"SELECT setval({sequence}, nextval({sequence}) + %s)",
    )
