"""Runs statements on a connection of PostgreSQL, by functions of its C library (libpq) that the driver passes on.

Three things differ from the driver's own cursor:

- A prepared statement takes a third of the CPU time.
- Statements stay prepared. The driver forgets all of its prepared statements after each ``ROLLBACK TO SAVEPOINT``.
- A statement whose result is not needed waits for the next one (`PostgresCursor.execute_later`). They are sent together
  ("Pipeline Mode" in PostgreSQL's manual), so that only statements whose results are needed take a round trip.
"""

import re
import select
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, NamedTuple

import psycopg
from attrs import Factory, define, field
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus

PREPARED_AFTER: Final = 5
"""Executions on a connection after which a statement is prepared there, as the driver's ``prepare_threshold`` has it.
"""
MOST_PREPARED: Final = 1000
"""Statements that are prepared on a connection at most."""
REPLANNED_EACH_S: Final = 10.0
"""Seconds after which prepared statements are planned anew.

A plan that was made while a table was small may read all of it, and PostgreSQL keeps the plan until it analyzes the
table.
"""
_DISCARD_PLANS: Final = "DISCARD PLANS"
_MOST_COUNTED: Final = 10_000
"""Statements whose executions are counted for `PREPARED_AFTER`; then the counts begin anew."""
_MOST_PREPARED_VALUES: Final = 64
"""A statement with more values is not prepared: its plan takes much memory, and is a small part of its cost."""
_MOST_WAITING: Final = 500
"""Statements that wait at most, so that they take little memory."""
_CANCEL_TIMEOUT_S: Final = 5.0
"""Time that an interrupted statement has to end before its connection is closed, as the driver has it."""
_PLACEHOLDER: Final = re.compile("%[s%]")
_STATE_KEY: Final = "torc_statements"
_DONE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})


@lru_cache(maxsize=4096)
def numbered(text: str) -> bytes:
    """Return a statement with the placeholders of libpq, ``$1`` and so on, in place of the driver's ``%s``."""
    numbers = count(1)
    return _PLACEHOLDER.sub(lambda found: "%" if found[0] == "%%" else f"${next(numbers)}", text).encode()


@define
class ConnectionStatements:
    """What a connection keeps for all transactions on it.

    Attributes:
        connection: The driver's connection.
        values: The driver's ``Transformer``: converts values to and from what PostgreSQL sends, as its own cursor does.
        names: The names of the statements that are prepared, by their texts.
    """

    connection: "psycopg.Connection[Any]"
    values: Any
    names: dict[str, bytes] = Factory(dict)
    _uses: Counter[str] = Factory(Counter)
    _named: int = 0
    _planned_at: float = Factory(time.monotonic)
    _poll: select.poll = Factory(select.poll)
    _awaited: int = 0

    @classmethod
    def of(cls, pooled: Any) -> "ConnectionStatements":
        """Return what a connection of SQLAlchemy's pool keeps."""
        found: ConnectionStatements | None = pooled.info.get(_STATE_KEY)
        if found is None:
            found = pooled.info[_STATE_KEY] = cls.new(pooled.driver_connection)
        return found

    @classmethod
    def new(cls, connection: "psycopg.Connection[Any]") -> "ConnectionStatements":
        """Return what a connection keeps that has run nothing."""
        return cls(connection, Transformer(connection))

    def is_due(self, text: str, values: int) -> bool:
        """Return whether a statement that is about to be run, with a number of values, is to be prepared before."""
        if text in self.names or values > _MOST_PREPARED_VALUES or len(self.names) >= MOST_PREPARED:
            return False
        if len(self._uses) >= _MOST_COUNTED:
            self._uses.clear()
        self._uses[text] += 1
        return self._uses[text] > PREPARED_AFTER

    def statements_before(self) -> list[str]:
        """Return the statements to be run before a transaction begins: now and then one that discards plans."""
        now = time.monotonic()
        if not self.names or now < self._planned_at + REPLANNED_EACH_S:
            return []
        self._planned_at = now
        return [_DISCARD_PLANS]

    def new_name(self) -> bytes:
        """Return a name that no prepared statement of the connection has ever had."""
        self._named += 1
        return b"torc_%d" % self._named

    def wait_for_result(self, timeout_s: float | None = None) -> None:
        """Send what has not been sent, and wait until a result can be read without waiting.

        Raises:
            psycopg.OperationalError: the connection is lost, or the time is over.
        """
        libpq = self.connection.pgconn
        while libpq.flush():
            self._wait_for(select.POLLIN | select.POLLOUT, timeout_s)
            libpq.consume_input()  # the server may send nothing more until what it has sent is read
        while libpq.is_busy():
            self._wait_for(select.POLLIN, timeout_s)
            libpq.consume_input()

    def _wait_for(self, events: int, timeout_s: float | None) -> None:
        if events != self._awaited:
            self._poll.register(self.connection.pgconn.socket, events)
            self._awaited = events
        if not self._poll.poll(None if timeout_s is None else 1000 * timeout_s):
            raise psycopg.OperationalError("the server does not answer")


class _BoundStatement(NamedTuple):
    """A statement, its values as PostgreSQL reads them, and what is called with its result."""

    text: str
    values: Sequence[Any]
    on_result: Callable[[Any], object] | None


@define
class PostgresCursor:
    """Runs the statements of one transaction; has the methods of Python's DB-API that `Tx` uses.

    A statement that fails raises the driver's error. With statements that waited, the error may be that of one of them.
    """

    _statements: ConnectionStatements
    _waiting: list[_BoundStatement] = Factory(list)
    _result: Any = None
    _undo_from: int = field(default=0)
    """Number of the waiting commands that precede the latest savepoint."""
    _is_closed: bool = False

    @property
    def connection(self) -> "psycopg.Connection[Any]":
        """The driver's connection, after all that waited was sent."""
        self.send_waiting()
        return self._statements.connection

    @property
    def is_connected(self) -> bool:
        """Whether the connection can be used."""
        return not self._statements.connection.closed

    @property
    def rowcount(self) -> int:
        """Number of rows that the last statement changed."""
        return self._result.command_tuples or 0

    def close(self) -> None:
        """Run no more statements, also none that waits."""
        self._is_closed = True
        self._waiting.clear()

    def execute(self, text: str, values: Sequence[Any] = ()) -> None:
        """Run a statement, after those that wait."""
        self.execute_later(text, values)
        self.send_waiting()

    def execute_later(
        self, text: str, values: Sequence[Any] = (), on_result: Callable[[Any], object] | None = None
    ) -> None:
        """Run a statement together with the next one that cannot wait.

        Args:
            text: The statement, with the driver's placeholders ``%s``.
            values: A value for each placeholder.
            on_result: Is called with the driver's ``PGresult`` of the statement.

        Raises:
            psycopg.DataError: PostgreSQL cannot store a value.
        """
        if self._is_closed:
            raise psycopg.InterfaceError("the transaction is closed")
        # PostgreSQL finds the types of the texts by the statement, so that all values fit one prepared statement.
        as_texts = self._statements.values.dump_sequence(values, [PyFormat.TEXT] * len(values)) if values else ()
        if len(self._waiting) == _MOST_WAITING:
            self.send_waiting()
        self._waiting.append(_BoundStatement(text, as_texts, on_result))

    def rows_later(self, text: str, values: Sequence[Any]) -> Callable[[], list[tuple[Any, ...]]]:
        """Run a query together with the next statement that cannot wait; return a function that returns its rows."""
        results: list[Any] = []
        self.execute_later(text, values, results.append)

        def rows() -> list[tuple[Any, ...]]:
            if not results:
                self.send_waiting()
            return self._rows_of(results[0])

        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement."""
        return self._rows_of(self._result)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row of the last statement, None if it has none."""
        rows = self._rows_of(self._result, 1)
        return rows[0] if rows else None

    def _rows_of(self, result: Any, most: int | None = None) -> list[tuple[Any, ...]]:
        converter = self._statements.values
        converter.set_pgresult(result)
        count = result.ntuples
        rows: list[tuple[Any, ...]] = converter.load_rows(0, count if most is None else min(most, count), tuple)
        return rows

    def begin_savepoint(self, *statements: str) -> None:
        """Run statements later, the last of which makes a savepoint."""
        for statement in statements:
            self.execute_later(statement)
        self._undo_from = len(self._waiting)

    def undo_to_savepoint(self, statement: str) -> None:
        """Forget what waits since the savepoint was made, and run the statement that undoes what was sent."""
        del self._waiting[self._undo_from :]
        self.execute(statement)

    def send_waiting(self) -> Sequence[Any]:
        """Run the statements that wait; return their results.

        Raises:
            psycopg.Error: a statement failed; those after it were not run.
        """
        if not self._waiting:
            return ()
        commands, self._waiting, self._undo_from = self._waiting, [], 0
        try:
            results = self._results(commands)
        except BaseException:
            self._end_interrupted()
            raise
        for result in results:
            if result.status not in _DONE:
                raise error_from_result(result)
        for command, result in zip(commands, results, strict=True):
            if command.on_result is not None:
                command.on_result(result)
        self._result = results[-1]
        return results

    def _results(self, commands: Sequence[_BoundStatement]) -> list[Any]:
        """Send commands; return the result of each, and of preparing a statement if that fails."""
        statements, libpq = self._statements, self._statements.connection.pgconn
        new = {}
        for command in commands:
            if command.text not in new and statements.is_due(command.text, len(command.values)):
                new[command.text] = statements.new_name()
        if len(commands) == 1 and not new:
            self._send(commands[0], statements.names.get(commands[0].text))
            return self._read_results()[:1]
        libpq.enter_pipeline_mode()
        for text, name in new.items():
            libpq.send_prepare(name, numbered(text))
        for command in commands:
            self._send(command, statements.names.get(command.text) or new.get(command.text))
        libpq.pipeline_sync()
        prepared = [self._read_results()[0] for _ in new]
        results = [self._read_results()[0] for _ in commands]
        self._read_result()  # that of the synchronization
        libpq.exit_pipeline_mode()
        failed = [result for result in prepared if result.status not in _DONE]
        if not failed:
            statements.names.update(new)
        return [*failed, *results]

    def _send(self, command: _BoundStatement, name: bytes | None) -> None:
        libpq = self._statements.connection.pgconn
        if name is None:
            libpq.send_query_params(numbered(command.text), command.values)
        else:
            libpq.send_query_prepared(name, command.values)

    def _read_results(self) -> list[Any]:
        """Return the results of one command, at least one."""
        results = []
        while (result := self._read_result()) is not None:
            results.append(result)
        if not results:
            raise psycopg.OperationalError("the connection is lost")
        return results

    def _read_result(self, timeout_s: float | None = None) -> Any:
        self._statements.wait_for_result(timeout_s)
        return self._statements.connection.pgconn.get_result()

    def _end_interrupted(self) -> None:
        """End the statements that an exception has interrupted, so that the transaction can be rolled back."""
        connection, libpq = self._statements.connection, self._statements.connection.pgconn
        try:
            if libpq.transaction_status == TransactionStatus.ACTIVE:
                if libpq.pipeline_status != PipelineStatus.OFF:
                    libpq.pipeline_sync()
                connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            while libpq.transaction_status == TransactionStatus.ACTIVE:
                self._read_result(_CANCEL_TIMEOUT_S)
            if libpq.pipeline_status != PipelineStatus.OFF:
                libpq.exit_pipeline_mode()
        except psycopg.Error:
            libpq.finish()
        except BaseException:
            libpq.finish()
            raise
