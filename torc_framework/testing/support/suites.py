"""The base of all suites: a suite that fails ends soon, and says which promises were broken."""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from torc_framework.testing.support.clauses import BROKEN_CLAUSES, SLOW_CLAUSES

FAILING_SUITE_S: Final = 30.0
"""How long the tests of a suite that has failed may have taken before the rest is skipped."""
SLOW_SUITE_S: Final = 5.0
"""The same for a plugin whose calls take too long."""


class ContractSuite:
    """The base of the contract suites.

    As soon as a promise was broken and the tests of the suite have taken `FAILING_SUITE_S`, the remaining ones are
    skipped, so that a plugin that blocks everywhere is reported within a minute.
    """

    @pytest.fixture(autouse=True)
    def _ends_soon(self) -> Iterator[None]:
        suite: Any = type(self)
        spent_s, clauses = vars(suite).get("_spent", (0.0, ()))
        limit_s = SLOW_SUITE_S if SLOW_CLAUSES.intersection(clauses) else FAILING_SUITE_S
        if clauses and spent_s > limit_s:
            pytest.skip(f"not tried, the plugin has broken promises and taken {spent_s:.0f} s: {'; '.join(clauses)}")
        began, known = time.monotonic(), len(BROKEN_CLAUSES)
        yield
        found = dict.fromkeys([*clauses, *BROKEN_CLAUSES[known:]])
        suite._spent = (spent_s + time.monotonic() - began, tuple(found))

    def _once(self, name: str, make: Any) -> Any:
        """Return a value that is made once for each suite; an error that was raised is raised again."""
        suite: Any = type(self)
        if name not in vars(suite):
            try:
                setattr(suite, name, (make(), None))
            except AssertionError as error:
                setattr(suite, name, (None, error))
        value, failure = vars(suite)[name]
        if failure is not None:
            raise failure
        return value
