"""Sizes of hosts as a user writes them: ``a: cpus=4 memory=8g gpus=1; b: cpus=2``."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.api import ConfigError, UserError, parse_memory
from torc_ssh.addresses import HostAddress, parse_address

_FORM: Final = "expected HOST: cpus=N memory=SIZE gpus=N; HOST: ..."


@frozen
class HostSize:
    """What one host offers; None is what the host itself reports.

    Attributes:
        cpus: Number of CPUs.
        memory_bytes: Memory in bytes.
        gpus: Number of GPUs, the first ones of those that the host has.
    """

    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _positive(text: str) -> int:
    if (number := _count(text)) == 0:
        raise ValueError("0 is too small")
    return number


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], int]]]] = {
    "cpus": ("cpus", _positive),
    "memory": ("memory_bytes", parse_memory),
    "gpus": ("gpus", _count),
}
"""For each word of the text: the field that it sets, and how its value is read."""


def parse_host_sizes(text: str) -> dict[str, HostSize]:
    """Return the size of each host that a text names, by the name as `HostAddress.host_key` has it.

    Raises:
        ConfigError: the text is malformed, or names a host twice.
    """
    sizes: dict[str, HostSize] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, separator, values = entry.rpartition(": ") if ": " in entry else entry.rpartition(":")
        if not separator:
            raise ConfigError(f"host_sizes of executor ssh: {entry!r} names no size; {_FORM}")
        key = _key(name.strip())
        if key in sizes:
            raise ConfigError(f"host_sizes of executor ssh: host {name.strip()!r} appears twice")
        sizes[key] = _size(name.strip(), values)
    return sizes


def size_of(sizes: Mapping[str, HostSize], address: HostAddress) -> HostSize:
    """Return what was said of a host."""
    return sizes.get(address.host_key, HostSize())


def check_named_hosts(sizes: Mapping[str, HostSize], addresses: list[HostAddress]) -> None:
    """Raise ConfigError if a size is given for a host that is not used."""
    known = {address.host_key for address in addresses}
    for name in sizes:
        if name not in known:
            used = ", ".join(map(str, addresses))
            raise ConfigError(f"host_sizes of executor ssh names {name!r}, which is none of the hosts: {used}")


def _key(name: str) -> str:
    try:
        return parse_address(name).host_key
    except UserError as error:
        raise ConfigError(f"host_sizes of executor ssh: {error}") from None


def _size(host: str, text: str) -> HostSize:
    values: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        name, separator, value = word.partition("=")
        if not separator or name not in _FIELDS:
            raise ConfigError(f"host_sizes of executor ssh: {word!r} of host {host!r} is no size; {_FORM}")
        field, read = _FIELDS[name]
        try:
            values[field] = read(value)
        except ValueError as error:
            raise ConfigError(f"host_sizes of executor ssh: {name} of host {host!r}: {error}") from None
    if not values:
        raise ConfigError(f"host_sizes of executor ssh: host {host!r} has no size; {_FORM}")
    return HostSize(**values)
