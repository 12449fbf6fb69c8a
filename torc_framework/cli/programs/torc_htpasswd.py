"""The program ``torc-htpasswd``: edits the file with the users and passwords of a server."""

import argparse
import getpass
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from torc_framework import __version__
from torc_framework.cli.programs.program_parser import ProgramParser
from torc_framework.errors import ConfigError, ExitStatus, TorcError, UserError, nearest
from torc_framework.server.auth import htpasswd
from torc_framework.system.environment import variable
from torc_framework.system.user import user_name
from torc_framework.text.terminal import cleaned_output

_COMMANDS: Final = ("create", "add", "remove", "list", "verify", "hash")
_FILE_HELP = "Password file (else TORC_AUTH_FILE)."


def _parser() -> ProgramParser:
    parser = ProgramParser(
        prog="torc-htpasswd",
        description="Users and passwords of a torc server. Passwords are hashed with bcrypt; the file is readable "
        "by its owner only, and is replaced atomically. A running server reads it again after a change.",
        examples=("torc-htpasswd add --create users ana", "torc-htpasswd list users", "torc-htpasswd hash"),
    )
    parser.add_argument("--version", action="version", version=f"torc-htpasswd {__version__}", help="Show the version.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = _command(commands, "add", "Add a user, or give one another password.", _add, user=True, secret=True)
    add.add_argument("--cost", type=int, default=htpasswd.DEFAULT_COST, metavar="N", help=_COST)
    add.add_argument("-c", "--create", action="store_true", help="Make a new file; an existing one is refused.")
    _command(commands, "create", "Make a file without users.", _create)
    _command(commands, "remove", "Remove a user.", _remove, user=True)
    _command(commands, "list", "List the users.", _list)
    _command(commands, "verify", "Check a password; exit code 1 if it is wrong.", _verify, user=True, secret=True)
    about = "Print a line for a password file: to send to an administrator."
    hashed = commands.add_parser(
        "hash", help=about, description=about, examples=("torc-htpasswd hash", "torc-htpasswd hash ana")
    )
    hashed.add_argument("user", nargs="?", metavar="USER", help="Your name on the server (default: your login name).")
    _add_common(hashed, secret=True)
    hashed.add_argument("--cost", type=int, default=htpasswd.DEFAULT_COST, metavar="N", help=_COST)
    hashed.set_defaults(work=_hash)
    return parser


_COST = (
    f"Work factor of the hash, {htpasswd.COSTS[0]} to {htpasswd.COSTS[-1]}: one more takes twice as long "
    f"(default: {htpasswd.DEFAULT_COST})."
)


def _command(
    commands: Any, name: str, text: str, work: Any, *, user: bool = False, secret: bool = False
) -> argparse.ArgumentParser:
    """Add a command that takes a file, as ``--file`` or before the user."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, examples=(f"torc-htpasswd {name} users{' ana' if user else ''}",)
    )
    if user:
        parser.add_argument("names", nargs="+", metavar="[FILE] USER", help="The user; the file may stand before it.")
    else:
        parser.add_argument("names", nargs="*", metavar="[FILE]", help=_FILE_HELP)
    parser.add_argument("--file", type=Path, metavar="FILE", help=_FILE_HELP)
    _add_common(parser, secret=secret)
    parser.set_defaults(work=work, takes_user=user)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, secret: bool) -> None:
    if secret:
        parser.add_argument(
            "--password",
            metavar="TEXT",
            help="The password; other users of this machine see it while the command runs. '-' reads a line of "
            "standard input. Without it you are asked, or standard input is read if it is no terminal.",
        )
    parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="Output format.")


# --- what is given --------------------------------------------------------------------------------


def _path_and_user(arguments: argparse.Namespace) -> tuple[Path, str]:
    """Return the file and the user.

    Raises:
        UserError: too many or too few arguments are given.
    """
    names: list[str] = arguments.names
    path = arguments.file or (Path(named) if (named := variable("TORC_AUTH_FILE")) else None)
    expected = 1 if arguments.takes_user else 0
    if len(names) == expected + 1 and arguments.file is None:
        path, names = Path(names[0]), names[1:]
    if len(names) != expected:
        raise UserError(
            "expected " + ("one USER" if expected else "no more than a FILE") + f", not {' '.join(names)!r}"
        )
    if path is None:
        raise UserError("which file? give --file FILE, or set TORC_AUTH_FILE")
    if expected:
        htpasswd.check_name(names[0])
    return path, names[0] if names else ""


def _password(arguments: argparse.Namespace, user: str, *, twice: bool) -> str:
    """Return the password: the argument, a line of standard input, or the answer to a question at the terminal."""
    given: str | None = arguments.password
    if given is not None and given != "-":
        return given
    if given == "-" or not sys.stdin.isatty():
        line = sys.stdin.readline()
        if not line:
            raise UserError("no password: standard input is empty")
        return line.removesuffix("\n").removesuffix("\r")
    password = getpass.getpass(f"Password for '{user}': ")
    if twice and getpass.getpass("The same again: ") != password:
        raise UserError("the two passwords differ; nothing was changed")
    return password


def _print_result(arguments: argparse.Namespace, text: str, facts: Any) -> None:
    print(json.dumps(facts) if arguments.format == "json" else text)


# --- the commands ---------------------------------------------------------------------------------


def _create(arguments: argparse.Namespace) -> int:
    path, _ = _path_and_user(arguments)
    _refuse_existing(path)
    htpasswd.edit(path, {}, create=True)
    text = f"Created {path} without users; 'torc-htpasswd add {path} USER' adds one"
    _print_result(arguments, text, {"file": str(path), "done": "created"})
    return ExitStatus.OK


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path} exists already, and nothing was changed; 'torc-htpasswd add {path} USER' adds a user")


def _add(arguments: argparse.Namespace) -> int:
    path, user = _path_and_user(arguments)
    if arguments.create:
        _refuse_existing(path)
    known = htpasswd.read(path) if path.exists() else {}
    hashed = htpasswd.hash_password(_password(arguments, user, twice=True), arguments.cost)
    htpasswd.edit(path, {user: hashed}, create=True)
    done = "updated" if user in known else "added"
    text = f"Changed the password of {user} in {path}" if user in known else f"Added {user} to {path}"
    _print_result(arguments, text, {"user": user, "file": str(path), "done": done})
    return ExitStatus.OK


def _remove(arguments: argparse.Namespace) -> int:
    path, user = _path_and_user(arguments)
    if user not in htpasswd.read(path):
        raise ConfigError(f"{path} has no user {user!r}")
    htpasswd.edit(path, {user: None})
    _print_result(arguments, f"Removed {user} from {path}", {"user": user, "file": str(path), "done": "removed"})
    return ExitStatus.OK


def _list(arguments: argparse.Namespace) -> int:
    path, _ = _path_and_user(arguments)
    users = [*htpasswd.read(path)]
    if arguments.format == "json":
        print(json.dumps({"users": users}))
    else:
        print("\n".join(users) if users else f"{path} has no users")
    return ExitStatus.OK


def _verify(arguments: argparse.Namespace) -> int:
    path, user = _path_and_user(arguments)
    hashed = htpasswd.read(path).get(user)
    is_right = htpasswd.matches(_password(arguments, user, twice=False), hashed or "") if hashed else False
    text = f"The password of {user} is right" if is_right else f"The password of {user} is wrong"
    _print_result(arguments, text if hashed else f"{path} has no user {user!r}", {"user": user, "verified": is_right})
    return ExitStatus.OK if is_right else ExitStatus.FAILED


def _hash(arguments: argparse.Namespace) -> int:
    user = arguments.user or user_name()
    htpasswd.check_name(user)
    hashed = htpasswd.hash_password(_password(arguments, user, twice=True), arguments.cost)
    _print_result(arguments, f"{user}:{hashed}", {"user": user, "hash": hashed, "line": f"{user}:{hashed}"})
    if arguments.format == "table":
        print("Send the line above to your server's administrator.", file=sys.stderr)
    return ExitStatus.OK


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-htpasswd``; return the exit code of the process."""
    with cleaned_output():
        return _run(argv)


def _with_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line; one in the form of Apache's htpasswd, ``[-c] FILE USER``, becomes ``add``.

    Raises:
        UserError: the first word is neither a command nor, without ``-c``, a path or an existing file.
    """
    if not words or words[0] in (*_COMMANDS, "-h", "--help", "--version"):
        return [*words]
    is_path = words[0].startswith("-") or "/" in words[0] or Path(words[0]).is_file()
    if not is_path and not {"-c", "--create"}.intersection(words):
        close = nearest(words[0], _COMMANDS)
        hint = f"did you mean {close!r}?" if close else f"commands: {', '.join(_COMMANDS)}"
        raise UserError(f"{words[0]!r} is neither a command nor a password file; {hint}")
    return ["add", *words]


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(_with_command(sys.argv[1:] if argv is None else argv))
        return int(arguments.work(arguments))
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
