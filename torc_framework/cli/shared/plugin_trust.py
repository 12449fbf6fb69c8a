"""Questions and warnings about folders with plugins that the user has not trusted."""

import sys
from collections.abc import Sequence

import typer

from torc_framework.errors import UserError
from torc_framework.plugins.project_folders import ProjectFolder
from torc_framework.plugins.trusted_folders import trust_folder
from torc_framework.text.terminal import one_line


def require_trust(folders: Sequence[ProjectFolder]) -> None:
    """Ask at the terminal whether to trust folders; return once all of them are trusted.

    Raises:
        UserError: there is no terminal, the answer was no, or others could have written the files.
    """
    for folder in folders:
        if not (folder.can_be_trusted and sys.stdin.isatty() and sys.stderr.isatty()):
            raise UserError(folder.explanation)
        typer.echo(
            f"{one_line(folder.path)} holds plugins, which are programs that would run with your rights:", err=True
        )
        for name in folder.names:
            typer.echo(f"  {one_line(name)}  {len(folder.sources[name]):,} bytes", err=True)
        typer.echo(f"They are not imported: {one_line(folder.refusal)}.", err=True)
        if not typer.confirm("Trust these files?", default=False, err=True):
            raise UserError(folder.explanation)
        trust_folder(folder.project, folder.digest, folder.names)


def warn_of_missing_plugins(folders: Sequence[ProjectFolder]) -> None:
    """Warn on standard error that plugins of these folders are left out, and why."""
    for folder in folders:
        typer.echo(f"Warning: what its plugins define is unknown here: {folder.explanation}", err=True)
