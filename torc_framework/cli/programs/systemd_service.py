"""``torc-server service``: a server that systemd starts, watches and ends."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.cli.programs.server_flags import add_settings, given_settings
from torc_framework.errors import ExitStatus, OperatorError, UserError
from torc_framework.models.settings import SettingEntry, setting_entries
from torc_framework.server.settings import ServerSettings

UNIT: Final = "torc-server.service"
BOOTED: Final = Path("/run/systemd/system")
"""There while systemd is the manager of this machine."""
SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
_STATES: Final = ("LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID")
NOT_ACTIVE: Final = 3
"""Exit code of ``status`` for a service that does not run, as systemctl has it."""

Values = dict[tuple[str, ...], Any]
"""Settings of the server by their path."""

_HARDENING: Final = """\
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
"""
"""Hardening that every manager can do, also a user's own."""
_SYSTEM_HARDENING: Final = """\
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RemoveIPC=yes
"""
"""Hardening that needs the system's manager."""


@frozen
class Manager:
    """Whose systemd it is.

    Attributes:
        is_user: That of the user who asks, not that of the machine.
        folder: Where its units are.
        data: Where the server keeps its database.
        logs: Where the server writes its log.
    """

    is_user: bool
    folder: Path
    data: Path
    logs: Path

    @property
    def unit(self) -> Path:
        """The unit file."""
        return self.folder / UNIT

    @property
    def scope(self) -> list[str]:
        """The flags that systemctl needs."""
        return ["--user"] if self.is_user else []

    @property
    def flag(self) -> str:
        """What a person adds to our commands."""
        return " --user" if self.is_user else ""


def manager_of(*, is_user: bool) -> Manager:
    """Return the user's manager or the machine's."""
    if not is_user:
        return Manager(False, SYSTEM_FOLDER, Path("/var/lib/torc"), Path("/var/log/torc"))
    from torc_framework.system.user import user_folder

    units = user_folder("config").parent / "systemd" / "user"
    return Manager(True, units, user_folder("data"), user_folder("log"))


# --- the unit -------------------------------------------------------------------------------------


def unit_text(manager: Manager, settings: Values, run_as: str | None) -> str:
    """Return the unit of a server that is started with these settings."""
    command = [*program(), "run", *flags(settings)]
    owner = ""
    if not manager.is_user:
        owner = f"User={run_as}\n" if run_as else "DynamicUser=yes\n"
        owner += "StateDirectory=torc\nLogsDirectory=torc\nStateDirectoryMode=0700\nWorkingDirectory=/var/lib/torc\n"
        owner += "".join(f"ReadWritePaths={_quoted(str(folder))}\n" for folder in _folders_outside(manager, settings))
    return (
        "[Unit]\n"
        "Description=Torc workflow server\n"
        + ("" if manager.is_user else "Wants=network-online.target\nAfter=network-online.target\n")
        + "\n[Service]\n"
        "Type=notify\n"
        f"ExecStart={' '.join(map(_escaped, command))}\n"
        "Restart=on-failure\n"
        "RestartSec=5\n"
        "RestartPreventExitStatus=2\n"
        "TimeoutStopSec=30\n"
        f"{owner}"
        "UMask=0077\n"
        f"{_HARDENING}{'' if manager.is_user else _SYSTEM_HARDENING}"
        f"\n[Install]\nWantedBy={'default.target' if manager.is_user else 'multi-user.target'}\n"
    )


def program() -> list[str]:
    """Return how the service calls this program: the one beside the interpreter that runs now."""
    beside = Path(sys.executable).with_name("torc-server")
    return [str(beside)] if beside.exists() else [sys.executable, "-P", "-m", "torc_framework.cli.programs.torc_server"]


def flags(settings: Values) -> list[str]:
    """Return the command line of settings; paths are absolute, for a service is started elsewhere."""
    words: list[str] = []
    for leaf in setting_entries(ServerSettings):
        if leaf.path not in settings:
            continue
        value = settings[leaf.path]
        flag = max(leaf.facts.flags or ("--" + leaf.path[-1].replace("_", "-"),), key=len)
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, tuple):
            words += [f"{flag}={item}" for item in value]
        else:
            words.append(f"{flag}={_placed(leaf, value)}")
    return words


def _placed(leaf: SettingEntry, value: Any) -> Any:
    if isinstance(value, Path):
        return value.absolute()
    if leaf.path == ("database",) and ":" not in value:
        return Path(value).expanduser().absolute()
    return value


def _folders_outside(manager: Manager, settings: Values) -> list[Path]:
    """Return the folders outside of the manager's that the server writes to, as far as its command line says."""
    folders = []
    if ("logging", "log_dir") in settings:
        folders.append(settings["logging", "log_dir"].absolute())
    if ":" not in (database := settings.get(("database",), ":")):
        folders.append(Path(database).expanduser().absolute().parent)
    return [folder for folder in folders if not {manager.data, manager.logs} & {folder, *folder.parents}]


def _escaped(word: str) -> str:
    """Return a word of a command line as units want it: quoted, with no specifiers and no variables."""
    return _quoted(word.replace("$", "$$"))


def _quoted(word: str) -> str:
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{safe}"' if safe != word or not safe or set(safe) & set(" \t'") else safe


def _settings_for_unit(manager: Manager, given: Values) -> Values:
    """Return the settings that the unit must name: those given, and those that the service would not find itself.

    It reads the system's file, and one with --user its user's; it has neither the environment nor the
    folder of whoever installs it.
    """
    from torc_framework.config import Config, config_locations

    config = Config.load(flags={("server", *path): value for path, value in given.items()})
    places = config_locations()
    found_again = {str(places["system"]), *([str(places["user"])] if manager.is_user else [])}
    settings: Values = {}
    for leaf in setting_entries(ServerSettings):
        whole = evolve(leaf, path=("server", *leaf.path))
        origin = config.origin(whole)
        if origin in found_again:
            continue
        if origin != "default":
            settings[leaf.path] = config.value(whole)
        elif leaf.path in _DEFAULT_LOCATIONS:
            settings[leaf.path] = _DEFAULT_LOCATIONS[leaf.path](manager)
    return settings


_DEFAULT_LOCATIONS: Final[Mapping[tuple[str, ...], Callable[[Manager], Any]]] = {
    ("database",): lambda manager: str(manager.data / "torc.db"),
    ("logging", "log_dir"): lambda manager: manager.logs,
}
"""Where a service keeps what nobody gave a place."""


# --- commands -------------------------------------------------------------------------------------


def add_commands(service: argparse.ArgumentParser) -> None:
    """Add what is below ``service``."""
    below = service.add_subparsers(dest="service_command", required=True, metavar="COMMAND")
    for name, (function, help_) in _COMMANDS.items():
        parser = below.add_parser(name, help=help_, description=help_)
        parser.add_argument("--user", action="store_true", help="The service of yours, not of the machine; no root.")
        parser.set_defaults(work=function)
        if name == "install":
            parser.add_argument("--run-as", metavar="USER", help="User of a service of the machine (default: its own).")
            parser.add_argument("--dry-run", action="store_true", help="Print the unit and change nothing.")
            add_settings(parser, ServerSettings)
        if name == "status":
            parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="Output format.")


def install(arguments: argparse.Namespace) -> int:
    """Write the unit and make systemd know it."""
    manager = manager_of(is_user=arguments.user)
    if arguments.user and arguments.run_as:
        raise UserError("--run-as is for a service of the machine; one with --user runs as you")
    settings = _settings_for_unit(manager, given_settings(arguments))
    places = [] if manager.is_user or arguments.run_as else _folders_outside(manager, settings)
    if places:
        raise UserError(
            f"the service's own user may write below {manager.data} and {manager.logs}, but not to {places[0]}; "
            "name a user who may with --run-as"
        )
    text = unit_text(manager, settings, arguments.run_as)
    if arguments.dry_run:
        print(text, end="")
        return ExitStatus.OK
    _need_systemd()
    try:
        manager.folder.mkdir(parents=True, exist_ok=True)
        manager.unit.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_allowed(manager, f"cannot write {manager.unit}: {error.strerror}") from error
    _systemctl(manager, "daemon-reload")
    _systemctl(manager, "enable", UNIT)
    print(f"Wrote {manager.unit}; start the server with 'torc-server service start{manager.flag}'")
    return ExitStatus.OK


def _installed(arguments: argparse.Namespace) -> Manager:
    """Return the manager of the service that is meant, which must be installed."""
    manager = manager_of(is_user=arguments.user)
    _need_installed(manager)
    _need_systemd()
    return manager


def uninstall(arguments: argparse.Namespace) -> int:
    """Stop the server and take the unit away; database and logs stay."""
    manager = _installed(arguments)
    _systemctl(manager, "disable", "--now", UNIT)
    try:
        manager.unit.unlink()
    except OSError as error:
        raise _not_allowed(manager, f"cannot remove {manager.unit}: {error.strerror}") from error
    _systemctl(manager, "daemon-reload")
    print(f"Removed {manager.unit}; database and logs are where they were")
    return ExitStatus.OK


def start(arguments: argparse.Namespace) -> int:
    """Start the server; returns when it answers."""
    _systemctl(_installed(arguments), "start", UNIT)
    print(f"Started {UNIT}")
    return ExitStatus.OK


def stop(arguments: argparse.Namespace) -> int:
    """Stop the server; returns when it has ended."""
    _systemctl(_installed(arguments), "stop", UNIT)
    print(f"Stopped {UNIT}")
    return ExitStatus.OK


def status(arguments: argparse.Namespace) -> int:
    """Say whether the server is installed and runs; exit code 0 if it runs, else 3."""
    manager = manager_of(is_user=arguments.user)
    _need_systemd()
    said = _systemctl(manager, "show", "--property=" + ",".join(_STATES), UNIT)
    state = dict(line.partition("=")[::2] for line in said.splitlines() if "=" in line)
    runs = state.get("ActiveState") == "active"
    found = {
        "unit": str(manager.unit),
        "is_installed": manager.unit.exists(),
        "is_enabled": state.get("UnitFileState") == "enabled",
        "state": f"{state.get('ActiveState', 'unknown')} ({state.get('SubState', 'unknown')})",
        "pid": int(state.get("MainPID") or 0) or None,
    }
    if arguments.format == "json":
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            if value is not None:
                print(f"{name}: {str(value).lower() if isinstance(value, bool) else value}")
    return ExitStatus.OK if runs else NOT_ACTIVE


_COMMANDS: Final = {
    "install": (install, "Write the unit; takes the flags of 'torc-server run'."),
    "uninstall": (uninstall, "Stop the server and remove the unit; database and logs stay."),
    "start": (start, "Start the server; returns when it answers."),
    "stop": (stop, "Stop the server."),
    "status": (status, "Say whether the server runs; exit code 3 if it does not."),
}


def _need_systemd() -> None:
    if shutil.which("systemctl") is None or not BOOTED.exists():
        raise OperatorError(
            "systemd does not manage this machine; 'torc-server run --daemon --log-dir DIR' serves in the background, "
            "and 'torc-server service install --dry-run' prints the unit"
        )


def _need_installed(manager: Manager) -> None:
    if not manager.unit.exists():
        raise UserError(f"there is no {manager.unit}; 'torc-server service install{manager.flag}' writes it")


def _not_allowed(manager: Manager, message: str) -> OperatorError:
    return OperatorError(message if manager.is_user else f"{message}; use sudo, or --user for a service of your own")


def _systemctl(manager: Manager, *words: str) -> str:
    """Call systemctl; return what it prints.

    Raises:
        OperatorError: it refuses, in its own words.
    """
    call = ["systemctl", *manager.scope, *words]
    done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise OperatorError(f"{' '.join(call)}: {said}")
    return done.stdout
