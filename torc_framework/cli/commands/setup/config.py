"""``torc config``: shows, locates, creates and checks the configuration."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import print_json, print_table
from torc_framework.cli.shared.session import session_of
from torc_framework.distributions import how_to_get
from torc_framework.errors import ExitStatus, UserError
from torc_framework.system.private_files import make_private_folder, open_private
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.config import Config, ConfigFinding
    from torc_framework.models.settings import SettingEntry

app = CommandGroup("Settings: their values and sources, their files, and whether they are valid.")

HIDDEN_VALUE = "***"
"""Printed instead of a secret."""


_FORMATS: Final = {"toml": "table", "json": "json", "table": "table"}
"""Formats of ``torc config show``, and the general format that each stands for."""


class ConfigLocation(StrEnum):
    """The locations of configuration files."""

    SYSTEM = "system"
    USER = "user"
    LOCAL = "local"


@app.command("show")
def show(
    ctx: typer.Context,
    format_: Annotated[
        str | None,
        typer.Option("--format", "-f", metavar="toml|json", help="Output format (default: TOML)."),
    ] = None,
) -> None:
    """Show every setting as TOML, with its source; and the servers that stay (client.keep_server).

    Examples:
        torc config show
        torc config show -f json
    """
    from torc_framework.cli.programs import kept_servers
    from torc_framework.kept_server.location import server_folder
    from torc_framework.kept_server.server_files import running_servers

    session = session_of(ctx)
    if format_ not in (None, *_FORMATS):
        raise UserError(f"--format is {format_!r}; expected one of {', '.join(_FORMATS)}")
    if format_ is not None:
        session.set_option("format_", _FORMATS[format_])
    config = session.config
    found = [(leaf, _displayed(leaf, config.value(leaf)), config.origin(leaf)) for leaf in config.settings()]
    options = [(key, _without_secrets(value), origin) for key, value, origin in config.options()]
    states = [*running_servers(server_folder())]
    if session.wants_json:
        document: dict[str, Any] = {}
        for path, value in [*((leaf.path, value) for leaf, value, _ in found), *((key, v) for key, v, _ in options)]:
            table = document
            for name in path[:-1]:
                table = table.setdefault(name, {})
            table[path[-1]] = value
        origins = [*((leaf.path, origin) for leaf, _, origin in found), *((key, origin) for key, _, origin in options)]
        document["origins"] = {".".join(path): origin for path, origin in origins if origin != "default"}
        document["kept_servers"] = [kept_servers.facts(state) for state in states]
        print_json(document)
        return
    for leaf, value, origin in found:
        if value is None:
            print(f"# {leaf.key} is not set")
        else:
            print(f"{leaf.key} = {_toml(value)}" + ("" if origin == "default" else f"  # {origin}"))
    for path, value, origin in options:
        print(f"{'.'.join(path)} = {_toml(value)}  # {origin}")
    for state in states:
        print(one_line(f"# server that stays: {kept_servers.text(state)}"))


def _displayed(leaf: "SettingEntry", value: Any) -> Any:
    """Return a value for printing: secrets are hidden, paths and sections are converted to plain types."""
    import attrs

    if leaf.facts.secret and value is not None:
        return HIDDEN_VALUE
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        value = [attrs.asdict(row) if attrs.has(type(row)) else row for row in value]
    return _without_secrets(value)


def _without_secrets(value: Any) -> Any:
    """Return a value without passwords, tokens and the like, such as those in the URL of an embedded server."""
    from torc_framework.text.redaction import MARK, redact

    if isinstance(value, str):
        return redact(value).replace(MARK, HIDDEN_VALUE)
    if isinstance(value, dict):
        return {name: _without_secrets(item) for name, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, (list, tuple)) else value


def _toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    import json

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items() if item is not None) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


@app.command("paths")
def paths(ctx: typer.Context) -> None:
    """Show the locations of configuration files; lowest precedence first, and which exist.

    Examples:
        torc config paths
    """
    from torc_framework.config import config_locations

    rows = [{"place": place, "path": str(path), "exists": path.is_file()} for place, path in config_locations().items()]
    if session_of(ctx).wants_json:
        print_json(rows)
        return
    columns = [("Location", "place"), ("Path", "path"), ("Found", "exists")]
    print_table([(title, _item(name)) for title, name in columns], rows)
    print("Environment variables win over files: TORC_CLIENT__API_URL is api_url of the section [client].")
    if not any(row["exists"] for row in rows):
        print("There is no file yet; 'torc config init --user' writes one.")


def _item(name: str) -> Any:
    return lambda row: {True: "yes", False: "no"}.get(row[name], row[name])


@app.command("init")
def init(
    ctx: typer.Context,
    *,
    user: Annotated[bool, typer.Option("--user", help="Your file.")] = False,
    system: Annotated[bool, typer.Option("--system", help="The file for all users of this machine.")] = False,
    local: Annotated[bool, typer.Option("--local", help="torc.toml in the current folder.")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace an existing file.")] = False,
) -> None:
    """Write a configuration file; every setting is commented out, with its default and meaning.

    Examples:
        torc config init --user
        torc config init --local
    """
    from torc_framework.config import config_locations

    chosen = [
        place
        for place, wanted in (
            (ConfigLocation.USER, user),
            (ConfigLocation.SYSTEM, system),
            (ConfigLocation.LOCAL, local),
        )
        if wanted
    ]
    if len(chosen) != 1:
        raise UserError("which file? give one of --user, --system, --local; 'torc config paths' shows where they are")
    path = config_locations()[chosen[0]]
    if path.exists() and not force:
        raise UserError(f"{path} is there already; --force writes over it")
    try:
        if not path.parent.is_dir():
            make_private_folder(path.parent) if user else path.parent.mkdir(parents=True)
        with open(path, "w", encoding="utf-8", opener=open_private if user else None) as file:
            file.write("\n".join(template()) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    if session_of(ctx).wants_json:
        print_json({"path": str(path)})
    else:
        print(f"Wrote {path}")


def template() -> Iterator[str]:
    """Yield the lines of a configuration file with every setting commented out."""
    from torc_framework.config.sections import Sections
    from torc_framework.models.settings import setting_entries

    yield "# Settings of torc. Remove the # of a line to set its value; 'torc config validate' checks the file."
    section: tuple[str, ...] = ()
    for leaf in setting_entries(Sections):
        if "NAME" in leaf.path:
            continue
        if leaf.path[:-1] != section:
            section = leaf.path[:-1]
            yield f"\n[{'.'.join(section)}]"
        unit = f" [{leaf.facts.unit}]" if leaf.facts.unit else ""
        choices = f" One of {', '.join(leaf.facts.choices)}." if leaf.facts.choices else ""
        yield f"# {leaf.facts.doc}{unit}{choices}"
        yield f"# {leaf.path[-1]} = " + ("..." if leaf.default is None else _toml(leaf.default))


@app.command("validate")
def validate(ctx: typer.Context) -> None:
    """Check every configuration file and environment variable; exit code 2 if one is wrong.

    Examples:
        torc config validate
    """
    from torc_framework.config import Config
    from torc_framework.config.layers import DECLARED_BY_PLUGINS

    session = session_of(ctx)
    config, findings = Config.examine()
    notes = []
    for section, what in DECLARED_BY_PLUGINS.items():
        declared = _declared(section) if config.owners(section) else {}
        for name in config.owners(section):
            if name in declared:
                findings += _check_options(config, section, *declared[name])
            else:
                hint = how_to_get("executor" if section == "executor" else "plugin", name)
                notes.append(f"{section}.{name}: no {what} of this name is installed{f'; {hint}' if hint else ''}")
    notes += _profile_notes(config)
    if session.wants_json:
        files = [str(path) for path in config.files]
        print_json({"is_valid": not findings, "files": files, "findings": findings, "notes": notes})
    else:
        print(f"Files: {', '.join(map(str, config.files)) or 'none'}")
        for line in [*findings, *notes]:
            print(line)
        print(f"{len(findings)} error(s)" if findings else "The configuration is valid.")
    if findings:
        raise typer.Exit(int(ExitStatus.USAGE))


def _profile_notes(config: "Config") -> list[str]:
    """Return a line for each change of an HPC profile that neither a plugin nor the configuration has."""
    if not config.client.hpc.profile_overrides:
        return []
    from torc_framework.hpc.profiles import overrides_of_nothing
    from torc_framework.plugins.manager import PluginManager

    return overrides_of_nothing(config.client.hpc, PluginManager.load())


def _declared(section: str) -> dict[str, tuple[str, type[Any]]]:
    """Return name and options class of the executors or policies that plugins offer, by their key in the section."""
    from torc_framework.cli.shared.plugin_trust import warn_of_missing_plugins
    from torc_framework.plugins.manager import PluginManager

    plugins = PluginManager.load()
    warn_of_missing_plugins(plugins.refused_folders)
    if section == "executor":
        offered = {name: executor.Options for name, executor in plugins.executors().items()}
    else:
        offered = plugins.recovery_options()
    return {name.replace("-", "_"): (name, options) for name, options in offered.items()}


def _check_options(config: "Config", section: str, name: str, options: type[Any]) -> "list[ConfigFinding]":
    """Return the errors in the options of an executor or a policy."""
    from torc_framework.cli.shared.plugin_flags import kinds_of
    from torc_framework.config import WrongConfigError

    try:
        config.plugin_options(section, name, kinds_of(options))
    except WrongConfigError as error:
        return error.findings
    return []
