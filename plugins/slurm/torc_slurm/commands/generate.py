"""``torc slurm generate``: a spec with schedulers, job by job, for a look before anything is submitted."""

from pathlib import Path
from typing import Annotated, Final

import typer

from torc_framework.api import UserError
from torc_framework.api.commands import CommandGroup, print_json, session_of
from torc_slurm.commands import scheduler_options as g

_FORMATS: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".json5": "json5", ".kdl": "kdl"}


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("generate")(generate)


def generate(
    ctx: typer.Context,
    file: g.SpecFile,
    *,
    account: g.Account = None,
    profile: g.Profile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it here instead of printing it.")
    ] = None,
    single_allocation: g.SingleAllocation = False,
    group_by: g.GroupByOption = "resource-requirements",
    walltime_strategy: g.Strategy = "max-job-runtime",
    walltime_multiplier: g.Multiplier = 1.5,
    no_actions: Annotated[bool, typer.Option("--no-actions", help="Leave out the actions that ask for nodes.")] = False,
    overwrite: g.Overwrite = False,
    skip_checks: Annotated[bool, typer.Option("--skip-checks", help="Skip the checks of scheduler nodes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which schedulers it would have.")] = False,
) -> None:
    """Give a workflow Slurm schedulers, made from what its jobs ask for, and print it.

    Jobs that ask for the same share a scheduler; nodes for jobs that wait for others are asked for when
    these are ready. The result is a spec that 'torc submit' takes, after whatever changes you make.
    """
    from torc_framework.api.planning import dump_spec, load_options, spec_as_data

    session = session_of(ctx)
    wanted = g.SchedulerChoices(
        account,
        profile,
        single_allocation,
        group_by,
        walltime_strategy,
        walltime_multiplier,
        actions=not no_actions,
        overwrite=overwrite,
    )
    form = _form(output or file)
    made = g.generate_spec(session, file, load_options(session, file, skip_checks=skip_checks), wanted)
    if dry_run:
        if session.wants_json:
            print_json({"dry_run": True, **made.as_dict()})
        else:
            g.print_plan(made.planned)
        return
    text = dump_spec(made.spec, form)
    if output is not None:
        _write(output, text)
    if session.wants_json:
        written = None if output is None else str(output)
        print_json({**made.as_dict(), "output": written, "workflow": spec_as_data(made.spec)})
    elif output is None:
        print(text, end="")
    else:
        g.print_plan(made.planned)
        print(f"Wrote {output}; submit it with 'torc submit {output}'")


def _form(path: Path) -> str:
    """Return the format that a file's name stands for.

    Raises:
        UserError: it stands for none.
    """
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise UserError(f"{path}: the name must end in one of {', '.join(_FORMATS)}")
    return form


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
