"""The recovery of failed workflows: what failed, what the policies decide, and how it is carried out.

`failed_jobs` reads what happened, `decisions` asks the policies, `recover` carries out one recovery, `watch` repeats
that until no job is left to recover. Nothing here prints: every line for people goes to a `ReportLine`.
"""

from collections.abc import Callable

ReportLine = Callable[[str], None]
"""Gets a line of text for people about everything that happens."""
