"""Addresses of hosts, ``[user@]host[:port]``, and files that list them."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.api import UserError

MAX_FILE_BYTES: Final = 1 << 20
"""Largest worker file that is read; more is another kind of file."""

_FORM: Final = "[user@]host[:port]; an IPv6 address stands in brackets: [::1] or [::1]:2222"
_SYNTAX: Final = re.compile(
    r"(?:(?P<user>[^@]*)@)?(?:\[(?P<ipv6>[^\[\]]*)\]|(?P<name>[^\[\]:]*))(?::(?P<port>.*))?", re.S
)
_REFUSED: Final = re.compile(r"""[\x00-\x20\x7f-\x9f'"`$;&<>|(){}!*?,#=/@\[\]:\s]""")
"""Characters that no name has: they separate addresses, or mean something to a shell, which ``ssh`` may start."""
_LARGEST_PORT: Final = 65535


@frozen
class HostAddress:
    """The address of a host; ``str`` gives its text.

    Args:
        user: the user to log in as; None leaves it to the SSH configuration.
        host: name, alias of the SSH configuration, or IP address, without brackets.
        port: TCP port; None leaves it to the SSH configuration.
    """

    user: str | None
    host: str
    port: int | None

    def __str__(self) -> str:
        user = "" if self.user is None else f"{self.user}@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{user}{host}" + ("" if self.port is None else f":{self.port}")

    @property
    def host_key(self) -> str:
        """What two addresses of one host have in common: the host in one spelling, without user and port."""
        try:
            return str(ipaddress.ip_address(self.host))
        except ValueError:
            return self.host.lower()


def parse_address(text: str) -> HostAddress:
    """Return the address that a text ``[user@]host[:port]`` stands for.

    Raises:
        UserError: the text is not an address; the message says why.
    """
    found = _SYNTAX.fullmatch(text)
    if found is None:
        raise UserError(f"{text!r} is no address of a host: expected {_FORM}")
    user, ipv6, name, port = found.group("user", "ipv6", "name", "port")
    host = name if ipv6 is None else ipv6
    problem = (
        (_problem_of_name("user", user) if user is not None else "")
        or (_problem_of_name("host", host) if ipv6 is None else _problem_of_ipv6(host))
        or (_problem_of_port(port) if port is not None else "")
    )
    if problem:
        raise UserError(f"{text!r} is no address of a host: {problem}; expected {_FORM}")
    return HostAddress(user, host, None if port is None else int(port))


def parse_addresses(texts: Iterable[str]) -> list[HostAddress]:
    """Return the addresses that the texts stand for, in their order.

    Raises:
        UserError: a text is not an address, or two name one host.
    """
    return _without_duplicates((f"address {number}", text) for number, text in enumerate(texts, 1))


def read_worker_file(path: Path) -> list[HostAddress]:
    """Return the addresses of a worker file: one a line; ``#`` begins a comment; blank lines are ignored.

    Raises:
        UserError: the file cannot be read or contains no host, a line is not an address, or a host appears twice; the
            message names file and line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UserError(f"worker file {path}: larger than 1 MiB; expected one address of a host on each line")
        lines = content.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise UserError(f"worker file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"worker file {path}: byte {error.start + 1} is not UTF-8 text") from None
    texts = ((f"line {number}", re.sub(r"(^|\s)#.*", "", line).strip()) for number, line in enumerate(lines, 1))
    try:
        addresses = _without_duplicates((place, text) for place, text in texts if text)
    except UserError as error:
        raise UserError(f"worker file {path}: {error}") from None
    if not addresses:
        raise UserError(f"worker file {path}: contains no hosts; expected {_FORM} on each line")
    return addresses


def _without_duplicates(texts: Iterable[tuple[str, str]]) -> list[HostAddress]:
    """Return the addresses of texts, each given with its place; raises UserError as `parse_addresses`."""
    places: dict[str, str] = {}
    addresses = []
    for place, text in texts:
        try:
            address = parse_address(text)
        except UserError as error:
            raise UserError(f"{place}: {error}") from None
        first = places.setdefault(address.host_key, place)
        if first != place:
            raise UserError(f"{place}: host {address.host!r} again (first: {first}); each host can only appear once")
        addresses.append(address)
    return addresses


def _problem_of_name(kind: str, name: str) -> str:
    if not name:
        return f"the {kind} is empty"
    if name.startswith("-"):
        return f"the {kind} begins with a hyphen"  # ssh would read it as an option
    refused = _REFUSED.search(name)
    return f"the {kind} contains {refused[0]!r}" if refused else ""


def _problem_of_ipv6(host: str) -> str:
    try:
        is_scoped = ipaddress.IPv6Address(host).scope_id is not None  # the server has no such addresses
    except ValueError:
        is_scoped = True
    return f"{host!r} in brackets is no IPv6 address, or has a scope" if is_scoped else ""


def _problem_of_port(port: str) -> str:
    if re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) <= _LARGEST_PORT:
        return ""
    return f"port {port!r} is not a number from 1 to {_LARGEST_PORT}"
