"""``torc plugins``: who provides what."""

from operator import itemgetter
from typing import Annotated, Any

import attrs
import typer

from torc_framework.cli.app import App
from torc_framework.cli.common import session_of, show_many
from torc_framework.cli.output import Column, print_json, print_pairs, print_table
from torc_framework.executors import Executor, NoOptions, options_of
from torc_framework.plugins import PluginInfo

app = App("Installed plugins: who provides what.")


def _state(info: PluginInfo) -> str:
    if not info.enabled:
        return "off"
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
    """List all plugins, also those that are switched off or cannot be used."""
    session = session_of(ctx)
    infos = session.plugins().infos()
    show_many(session, "plugins", "plugins", COLUMNS, infos)
    if not session.wants_json:
        for info in infos:
            if info.error:
                print(f"{info.name}: {info.error}")


@app.command("show")
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(help="Name of the plugin.")]) -> None:
    """Show one plugin: where it comes from, its hooks, its executors, and the options of these or of recovery."""
    session = session_of(ctx)
    manager = session.plugins()
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
    """Return what a person or script wants to know of an executor."""
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
