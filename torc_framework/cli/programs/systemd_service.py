"""``torc-server service``: installs and controls the server as a systemd service."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
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
"""A folder that exists while systemd manages this machine (sd_booted(3))."""
SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
SYSTEM_VARIABLES: Final = Path("/etc/torc/server.env")
_STATES: Final = ("LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID")
NOT_ACTIVE: Final = 3
"""Exit code of ``status`` for a service that does not run, the same as systemctl's."""

Values = dict[tuple[str, ...], Any]
"""Values of the server's settings by their path."""

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
"""Hardening directives that the managers of the system and of users support."""
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
"""Hardening directives that only the system's manager supports."""
_CREDENTIALS: Final = (("auth_file",), ("tls_cert",), ("tls_key",))
"""Settings that name files with secrets, or files beside these. The system's manager reads them as root and passes
copies to the service, whose user has no access to them (systemd.exec(5), "LoadCredential=")."""
_SECRET_IN_URL: Final = re.compile(r"://[^/?#@]*:[^/?#@]*@|[?&](?:ssl)?password=")


@frozen
class SystemdManager:
    """A systemd manager, the system's or a user's, and the folders of a server that it starts.

    Attributes:
        is_user: It is the manager of the current user.
        folder: Folder of its units.
        data: Folder of the server's database.
        logs: Folder of the server's log.
        variables: File with environment variables of the server, which only its owner has to be able to read.
    """

    is_user: bool
    folder: Path
    data: Path
    logs: Path
    variables: Path

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
        """The flag of ``torc-server service`` for this manager."""
        return " --user" if self.is_user else ""


def manager_of(*, is_user: bool) -> SystemdManager:
    """Return the current user's manager or the system's."""
    if not is_user:
        return SystemdManager(False, SYSTEM_FOLDER, Path("/var/lib/torc"), Path("/var/log/torc"), SYSTEM_VARIABLES)
    from torc_framework.system.user import user_folder

    config = user_folder("config")
    units = config.parent / "systemd" / "user"
    return SystemdManager(True, units, user_folder("data"), user_folder("log"), config / SYSTEM_VARIABLES.name)


# --- the unit -------------------------------------------------------------------------------------


def unit_text(manager: SystemdManager, settings: Values, run_as: str | None) -> str:
    """Return the text of the unit of a server with these settings."""
    credentials = [] if manager.is_user else [path for path in _CREDENTIALS if path in settings]
    plain = {path: value for path, value in settings.items() if path not in credentials}
    command = [*map(_escaped, [*program(), "run", *flags(plain)])]
    command += [f"--{name.replace('_', '-')}=%d/{name}" for (name,) in credentials]
    owner = f"EnvironmentFile=-{_path_value(manager.variables)}\n"
    owner += "".join(f"LoadCredential={path[0]}:{_path_value(settings[path].absolute())}\n" for path in credentials)
    if not manager.is_user:
        owner += f"User={run_as}\n" if run_as else "DynamicUser=yes\n"
        owner += "StateDirectory=torc\nLogsDirectory=torc\nStateDirectoryMode=0700\nWorkingDirectory=/var/lib/torc\n"
        owner += "".join(f"ReadWritePaths={_quoted(str(folder))}\n" for folder in _folders_outside(manager, settings))
    return (
        "[Unit]\n"
        "Description=Torc workflow server\n"
        + ("" if manager.is_user else "Wants=network-online.target\nAfter=network-online.target\n")
        + "\n[Service]\n"
        "Type=notify\n"
        f"ExecStart={' '.join(command)}\n"
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
    """Return the command of this program in the unit: the one beside the running interpreter."""
    beside = Path(sys.executable).with_name("torc-server")
    return [str(beside)] if beside.exists() else [sys.executable, "-P", "-m", "torc_framework.cli.programs.torc_server"]


def flags(settings: Values) -> list[str]:
    """Return settings as flags; paths are absolute, since the service has another working directory."""
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
            words.append(f"{flag}={_absolute(leaf, value)}")
    return words


def _absolute(leaf: SettingEntry, value: Any) -> Any:
    if isinstance(value, Path):
        return value.absolute()
    if leaf.path == ("database",) and ":" not in value:
        return Path(value).expanduser().absolute()
    return value


def _folders_outside(manager: SystemdManager, settings: Values) -> list[Path]:
    """Return the folders outside of the manager's that the server writes to according to its flags."""
    folders = []
    if ("logging", "log_dir") in settings:
        folders.append(settings["logging", "log_dir"].absolute())
    if ":" not in (database := settings.get(("database",), ":")):
        folders.append(Path(database).expanduser().absolute().parent)
    return [folder for folder in folders if not {manager.data, manager.logs} & {folder, *folder.parents}]


def _escaped(word: str) -> str:
    """Return a word of ExecStart, quoted, with ``%`` and ``$`` escaped (systemd.service(5), "Command lines")."""
    return _quoted(word.replace("$", "$$"))


def _path_value(path: Path) -> str:
    """Return the path of a directive that knows no quotes and takes the rest of the line."""
    return str(path).replace("%", "%%")


def _quoted(word: str) -> str:
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{safe}"' if safe != word or not safe or set(safe) & set(" \t'") else safe


def _settings_for_unit(manager: SystemdManager, given: Values) -> Values:
    """Return the settings that the unit has to name: those that the service would not read itself.

    The service reads the system's configuration file, and with --user the user's, and the file with its variables. It
    has neither the environment nor the working directory of this command.
    """
    from torc_framework.config import Config, config_locations

    config = Config.load(flags={("server", *path): value for path, value in given.items()})
    places = config_locations(environ={})  # the service does not have TORC_CONFIG
    found_again = {str(places["system"]), *([str(places["user"])] if manager.is_user else [])}
    settings: Values = {}
    variables = _variables_in(manager.variables)
    for leaf in setting_entries(ServerSettings):
        whole = evolve(leaf, path=("server", *leaf.path))
        origin = config.origin(whole)
        its_own = {*leaf.facts.variables, "__".join(("TORC_SERVER", *leaf.path)).upper()}
        if origin in found_again or (origin != "flag" and its_own & variables):
            continue
        if origin != "default":
            settings[leaf.path] = config.value(whole)
        elif leaf.path in _DEFAULT_LOCATIONS:
            settings[leaf.path] = _DEFAULT_LOCATIONS[leaf.path](manager)
    return settings


def _variables_in(path: Path) -> set[str]:
    """Return the names of the variables in a file for systemd, if it can be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    return {line.partition("=")[0].strip() for line in lines if "=" in line and line.lstrip()[:1] not in "#;"}


def _refuse_secrets(manager: SystemdManager, settings: Values) -> None:
    """Refuse settings that would show a secret in the unit, and files that the service would not find.

    Raises:
        UserError: there is one.
    """
    if _SECRET_IN_URL.search(str(settings.get(("database",), ""))):
        raise UserError(
            "the URL of the database has a password, which everyone on this machine could read in the unit and in the "
            f"list of processes: write the line DATABASE_URL=URL into {manager.variables}, give that file mode 0600, "
            "and install the service without --database"
        )
    for path in _CREDENTIALS:
        if path in settings and not (settings[path].is_file() and str(settings[path].absolute()).isprintable()):
            raise UserError(f"--{path[0].replace('_', '-')}: there is no file {str(settings[path].absolute())!r}")


_DEFAULT_LOCATIONS: Final[Mapping[tuple[str, ...], Callable[[SystemdManager], Any]]] = {
    ("database",): lambda manager: str(manager.data / "torc.db"),
    ("logging", "log_dir"): lambda manager: manager.logs,
}
"""Locations of a service's files that no setting names."""


# --- commands -------------------------------------------------------------------------------------


def add_commands(service: argparse.ArgumentParser) -> None:
    """Add the commands of ``service``."""
    below = service.add_subparsers(dest="service_command", required=True, metavar="COMMAND")
    for name, (function, help_) in _COMMANDS.items():
        examples = (f"torc-server service {name}", f"torc-server service {name} --user")
        parser = below.add_parser(name, help=help_, description=help_, examples=examples)
        parser.add_argument(
            "--user", action="store_true", help="A service of your own, which needs no root, instead of the machine's."
        )
        parser.set_defaults(work=function)
        if name == "install":
            parser.add_argument("--run-as", metavar="USER", help="User of a service of the machine (default: its own).")
            parser.add_argument("--dry-run", action="store_true", help="Print the unit and change nothing.")
            add_settings(parser, ServerSettings)
        if name == "status":
            parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="Output format.")


def install(arguments: argparse.Namespace) -> int:
    """Write the unit and enable it."""
    manager = manager_of(is_user=arguments.user)
    if arguments.user and arguments.run_as:
        raise UserError("--run-as is for a service of the machine; one with --user runs as you")
    settings = _settings_for_unit(manager, given_settings(arguments))
    _refuse_secrets(manager, settings)
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
    _verify(manager, text)
    try:
        manager.folder.mkdir(parents=True, exist_ok=True)
        manager.unit.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_allowed(manager, f"cannot write {manager.unit}: {error.strerror}") from error
    _systemctl(manager, "daemon-reload")
    _systemctl(manager, "enable", UNIT)
    print(f"Wrote {manager.unit}; start the server with 'torc-server service start{manager.flag}'")
    return ExitStatus.OK


def _verify(manager: SystemdManager, text: str) -> None:
    """Have systemd verify a unit before it is written, where its tool is installed.

    Raises:
        OperatorError: systemd would not start the service.
    """
    if shutil.which("systemd-analyze") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder, UNIT)
        unit.write_text(text, encoding="utf-8")
        call = ["systemd-analyze", *manager.scope, "--man=no", "verify", str(unit)]
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if UNIT in line]
    if done.returncode and complaints:
        raise OperatorError(f"systemd does not accept the unit, and nothing was installed: {'; '.join(complaints)}")


def _installed(arguments: argparse.Namespace) -> SystemdManager:
    """Return the manager of the installed service.

    Raises:
        UserError: the service is not installed.
        OperatorError: systemd does not manage this machine.
    """
    manager = manager_of(is_user=arguments.user)
    _need_installed(manager)
    _need_systemd()
    return manager


def uninstall(arguments: argparse.Namespace) -> int:
    """Stop the server and remove the unit; database and logs stay."""
    manager = _installed(arguments)
    _systemctl(manager, "disable", "--now", UNIT)
    try:
        manager.unit.unlink()
    except OSError as error:
        raise _not_allowed(manager, f"cannot remove {manager.unit}: {error.strerror}") from error
    _systemctl(manager, "daemon-reload")
    print(f"Removed {manager.unit}; database and logs are kept")
    return ExitStatus.OK


def start(arguments: argparse.Namespace) -> int:
    """Start the server; return once it answers."""
    _systemctl(_installed(arguments), "start", UNIT)
    print(f"Started {UNIT}")
    return ExitStatus.OK


def stop(arguments: argparse.Namespace) -> int:
    """Stop the server; return once it has ended."""
    _systemctl(_installed(arguments), "stop", UNIT)
    print(f"Stopped {UNIT}")
    return ExitStatus.OK


def status(arguments: argparse.Namespace) -> int:
    """Print whether the service is installed and runs; exit code 0 if it runs, else 3."""
    manager = manager_of(is_user=arguments.user)
    _need_systemd()
    output = _systemctl(manager, "show", "--property=" + ",".join(_STATES), UNIT)
    state = dict(line.partition("=")[::2] for line in output.splitlines() if "=" in line)
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
    "start": (start, "Start the server and wait until it answers."),
    "stop": (stop, "Stop the server."),
    "status": (status, "Show whether the server runs; exit code 3 if it does not."),
}


def _need_systemd() -> None:
    if shutil.which("systemctl") is None or not BOOTED.exists():
        raise OperatorError(
            "systemd does not manage this machine; 'torc-server run --daemon --log-dir DIR' runs in the background, "
            "and 'torc-server service install --dry-run' prints the unit"
        )


def _need_installed(manager: SystemdManager) -> None:
    if not manager.unit.exists():
        raise UserError(f"there is no {manager.unit}; 'torc-server service install{manager.flag}' writes it")


def _not_allowed(manager: SystemdManager, message: str) -> OperatorError:
    return OperatorError(message if manager.is_user else f"{message}; use sudo, or --user for a service of your own")


def _systemctl(manager: SystemdManager, *words: str) -> str:
    """Call systemctl; return its output.

    Raises:
        OperatorError: it failed; the message has its error output.
    """
    call = ["systemctl", *manager.scope, *words]
    done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip() or f"exit code {done.returncode}"
        raise OperatorError(f"{' '.join(call)}: {reason}")
    return done.stdout
