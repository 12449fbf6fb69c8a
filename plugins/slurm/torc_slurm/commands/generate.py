"""``torc slurm generate``: prints a spec with planned schedulers."""

from pathlib import Path
from typing import Annotated, Final

import typer

from torc_framework.api import UserError
from torc_framework.api.commands import CommandGroup, print_json, session_of
from torc_slurm.commands import scheduler_options

_FORMATS: Final = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".json5": "json5", ".kdl": "kdl"}


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("generate")(generate)


@scheduler_options.takes_scheduler_choices
def generate(
    ctx: typer.Context,
    file: scheduler_options.SpecFile,
    *,
    choices: scheduler_options.SchedulerChoices,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it here instead of printing it.")
    ] = None,
    no_actions: Annotated[bool, typer.Option("--no-actions", help="Leave out the actions that request nodes.")] = False,
    overwrite: scheduler_options.Overwrite = False,
    skip_checks: scheduler_options.SkipChecks = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the planned schedulers.")] = False,
) -> None:
    """Plan Slurm schedulers for a spec from its jobs' requirements; print the spec with them.

    Jobs with the same requirements share a scheduler. Nodes for jobs that depend on others are requested when
    these jobs are ready. You may change the printed spec; 'torc submit' takes it.

    Examples:
        torc slurm generate workflow.yaml --account research
        torc slurm generate workflow.yaml --account research -o planned.yaml
    """
    from torc_framework.api.planning import dump_spec, load_options, spec_as_data

    session = session_of(ctx)
    form = _form(output or file)
    options = load_options(session, file, skip_checks=skip_checks)
    made = scheduler_options.generate_spec(session, file, options, choices, overwrite=overwrite, actions=not no_actions)
    if dry_run:
        if session.wants_json:
            print_json({"dry_run": True, **made.as_dict()})
        else:
            scheduler_options.print_plan(made.planned)
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
        scheduler_options.print_plan(made.planned)
        print(f"Wrote {output}; submit it with 'torc submit {output}'")


def _form(path: Path) -> str:
    """Return the format of a file by the end of its name.

    Raises:
        UserError: no format has this end.
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
