"""``torc slurm calls``: the number of calls of Slurm's programs."""

from collections import defaultdict
from operator import itemgetter
from typing import Annotated, Any, Final

import typer

from torc_framework.api import UserError, parse_duration
from torc_framework.api.commands import Column, CommandGroup, print_json, print_table, session_of
from torc_slurm.calls.call_log import CallLog, SlurmCall


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("calls")(calls)


def calls(
    ctx: typer.Context,
    *,
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="Calls within this time, such as PT30M or P1D.")
    ] = "P1D",
) -> None:
    """Show how often torc called Slurm's programs; for which purpose, and with which result.

    Sites ask users to keep these numbers low. "Most a minute" is the largest number within any calendar minute.

    Examples:
        torc slurm calls
        torc slurm calls --since '2 h'
    """
    session = session_of(ctx)
    try:
        seconds = parse_duration(since)
    except ValueError as error:
        raise UserError(f"--since: {error}") from None
    call_log = CallLog.of_user()
    rows = summarize_calls(list(call_log.calls(seconds)))
    if session.wants_json:
        print_json({"since_s": seconds, "ledger": str(call_log.path), "calls": rows})
    else:
        print_table(_COLUMNS, rows)


def summarize_calls(several: list[SlurmCall]) -> list[dict[str, Any]]:
    """Return one row for each program and purpose, most calls first."""
    groups: dict[tuple[str, str], list[SlurmCall]] = defaultdict(list)
    for call in several:
        groups[call.program, call.purpose].append(call)
    rows = []
    for (program, purpose), same in groups.items():
        minutes: dict[int, int] = defaultdict(int)
        for call in same:
            minutes[int(call.at // 60)] += 1
        rows.append(
            {
                "program": program,
                "purpose": purpose,
                "calls": len(same),
                "refused": sum(call.code not in (0, None) for call in same),
                "unanswered": sum(call.code is None for call in same),
                "seconds": round(sum(call.duration_s for call in same), 3),
                "most_per_minute": max(minutes.values()),
            }
        )
    return sorted(rows, key=lambda row: -row["calls"])


_COLUMNS: Final[list[Column]] = [
    ("Program", itemgetter("program")),
    ("Purpose", itemgetter("purpose")),
    ("Calls", itemgetter("calls")),
    ("Refused", itemgetter("refused")),
    ("Unanswered", itemgetter("unanswered")),
    ("Seconds", itemgetter("seconds")),
    ("Most a minute", itemgetter("most_per_minute")),
]
