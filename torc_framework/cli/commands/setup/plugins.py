"""``torc plugins``: lists and shows installed plugins, and trusts folders with plugins."""

from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import Column, print_json, print_pairs, print_table
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.executors import Executor
from torc_framework.plugin_options import NoOptions, options_of
from torc_framework.plugins.discovery import PluginInfo
from torc_framework.plugins.project_folders import PROJECT_FOLDER, read_project_folder
from torc_framework.plugins.trusted_folders import TrustedFolder, trust_folder, trusted_folders, untrust_folder
from torc_framework.text.terminal import one_line

app = CommandGroup("Installed plugins, what each provides, and the folders whose plugins are trusted.")


def _state(info: PluginInfo) -> str:
    if not info.enabled:
        return "off"
    if info.refused:
        return "not trusted"
    return "error" if info.error else "ok"


COLUMNS: list[Column] = [
    ("Name", "name"),
    ("Kind", lambda info: info.kind.value),
    ("Distribution", "distribution"),
    ("Version", "version"),
    ("State", _state),
    ("Hooks", lambda info: ", ".join(hook.removeprefix("torc_") for hook in info.hooks)),
]


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List all plugins; also disabled, broken and untrusted ones, and the folders that you trust.

    Examples:
        torc plugins list
        torc plugins list -f json
    """
    session = session_of(ctx)
    manager = session.plugins(skip_untrusted=True)
    manager.check_offers()
    infos, trusted = manager.infos(), trusted_folders()
    if session.wants_json:
        print_json({"plugins": infos, "trusted_folders": trusted})
        return
    show_many(session, "plugins", "plugins", COLUMNS, infos)
    for info in infos:
        if info.error:
            print(one_line(f"{info.name}: {info.error}"))
    if trusted:
        print("Trusted folders:")
        print_table([("Folder", "folder"), ("Since", "trusted_at"), ("Files", _files)], trusted)


def _files(trusted: TrustedFolder) -> str:
    return ", ".join(trusted.files)


_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that holds torc_plugins, or that folder itself.")]


@app.command("trust")
def trust_(ctx: typer.Context, folder: _Folder = Path()) -> None:
    """Trust the plugins of a folder: the present files in its torc_plugins may be imported and run as you.

    Read the files first. A digest of them is stored: after a change of a file the folder is no longer trusted. The
    files and all folders above them must belong to you or to root and be writable by the owner only.

    Examples:
        torc plugins trust
        torc plugins trust ~/project
    """
    session, found = session_of(ctx), read_project_folder(_project(folder))
    if found is None:
        raise UserError(f"there are no plugins to trust: {_project(folder) / PROJECT_FOLDER} holds no *.py")
    if not found.sources:
        raise UserError(found.explanation)
    trust_folder(found.project, found.digest, found.names)
    if session.wants_json:
        print_json({"folder": str(found.project), "digest": found.digest, "files": found.names})
        return
    print_pairs(f"Trusted {found.path}:", {"Files": ", ".join(found.names), "Digest": found.digest})


@app.command("untrust")
def untrust_(ctx: typer.Context, folder: _Folder = Path()) -> None:
    """Withdraw the trust in the plugins of a folder.

    Examples:
        torc plugins untrust ~/project
    """
    session, project = session_of(ctx), _project(folder).resolve()
    if not untrust_folder(project):
        raise UserError(f"you do not trust {project}; 'torc plugins list' shows which folders you trust")
    if session.wants_json:
        print_json({"folder": str(project)})
    else:
        print(f"{project} is no longer trusted")


def _project(folder: Path) -> Path:
    """Return the folder that holds ``torc_plugins``, given that folder or ``torc_plugins`` itself."""
    return folder.parent if folder.resolve().name == PROJECT_FOLDER else folder


@app.command("show")
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(help="Name of the plugin.")]) -> None:
    """Show one plugin: its source, hooks, executors, and options of executors and recovery.

    Examples:
        torc plugins show slurm
    """
    session = session_of(ctx)
    manager = session.plugins(skip_untrusted=True)
    manager.check_offers()
    info = manager.info(name)
    executors = [_executor(executor) for executor in manager.executors_of(name)]
    recovery = _options(manager.recovery_options().get(name, NoOptions))
    if session.wants_json:
        print_json({**attrs.asdict(info), "executors": executors, "recovery_options": recovery})
        return
    pairs = {
        "Kind": info.kind.value,
        "Distribution": info.distribution,
        "Version": info.version,
        "Source": info.source,
        "State": _state(info),
        "Error": info.error,
        "Hooks": ", ".join(info.hooks) or "none",
    }
    print_pairs(f"Plugin {name}:", pairs)
    for executor in executors:
        print(f"Executor {executor['name']}: {executor['description']}")
        _print_options(executor["options"])
    if recovery:
        print("Options of torc recover and torc watch:")
        _print_options(recovery)


def _print_options(options: list[dict[str, Any]]) -> None:
    if options:
        print_table([(key.capitalize(), itemgetter(key)) for key in options[0]], options)


def _executor(executor: type[Executor]) -> dict[str, Any]:
    """Return an executor as JSON values: name, description, capabilities, options."""
    return {
        "name": executor.name,
        "description": executor.description,
        "capabilities": attrs.asdict(executor.capabilities),
        "options": _options(executor.Options),
    }


def _options(options: type[Any]) -> list[dict[str, Any]]:
    return [
        {
            "flag": facts.flag,
            "type": getattr(facts.type, "__name__", str(facts.type)),
            "default": facts.default,
            "help": facts.help,
        }
        for facts in options_of(options)
    ]
