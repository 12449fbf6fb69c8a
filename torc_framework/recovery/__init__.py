"""Looks after failed workflows: what failed and why, what may be done about it, and doing it.

`cases` reads what happened, `decisions` asks the policies, `recover` carries out one recovery,
`watch` repeats that until a workflow is well. Nothing here prints: a *teller* is told every line.
"""

from collections.abc import Callable

ReportLine = Callable[[str], None]
"""Gets a line of text for people about everything that happens."""
