"""Which key a host may show: those of known_hosts, and for a host that is not listed there the first one."""

import asyncio
import shlex
from typing import Any, Final

import asyncssh

from torc_ssh.connection.host_config import HostConfig
from torc_ssh.connection.interface import ConnectError
from torc_ssh.connection.known_hosts import SSH_PORT, KnownKey, add_known_key, find_known_keys, name_in_known_hosts

_unsaved: Final[dict[str, str]] = {}
"""Keys that were accepted by this process and could not be written: the public key by the name in known_hosts."""


class HostKeyCheck:
    """The check of one host's key during one attempt to connect."""

    def __init__(self, config: HostConfig, known: list[KnownKey], name: str) -> None:
        self._config, self._known, self._name = config, known, name
        self._shown: str | None = None

    @classmethod
    async def prepare(cls, config: HostConfig) -> "HostKeyCheck":
        """Look the host up in the files of its configuration."""
        name = config.host_key_name or name_in_known_hosts(config.host, config.port)
        known = await asyncio.to_thread(find_known_keys, config.known_hosts, name.lower())
        if config.port != SSH_PORT and not config.host_key_name:  # ssh reads these from lines without a port also
            plain = await asyncio.to_thread(find_known_keys, config.known_hosts, config.host.lower())
            known += [key for key in plain if key.kind != "key"]
        if name in _unsaved:
            known.append(KnownKey(None, 0, "key", _unsaved[name]))
        return cls(config, known, name)

    def connect_options(self) -> dict[str, Any]:
        """Return the arguments of ``asyncssh.connect`` that make it check the key as this class wants."""
        keys, authorities, revoked = (self._keys(kind) for kind in ("key", "authority", "revoked"))
        options: dict[str, Any] = {"known_hosts": (keys, authorities, revoked)}
        if not keys:  # asyncssh would otherwise refuse a host with the certificate of another authority, or without one
            options["server_host_key_algs"] = "default" if authorities else _PLAIN_KEYS
        return options

    def accepts(self, key: asyncssh.SSHKey) -> bool:
        """Return whether a key that is not listed may be used."""
        self._shown = key.export_public_key("openssh").decode().strip()
        if self._config.unknown_keys == "accept-new":
            return not any(known.kind == "key" for known in self._known)
        return self._config.unknown_keys == "accept-all"

    async def remember(self) -> None:
        """Append the key that the host showed to known_hosts if it is new; called after the log-in."""
        path = self._config.accepted_keys_file
        if self._shown is None or path is None or any(known.kind == "key" for known in self._known):
            return
        public_key = " ".join(self._shown.split()[:2])
        try:
            await asyncio.to_thread(add_known_key, path, self._name, public_key, is_hashed=self._config.hashes_names)
        except OSError:
            _unsaved[self._name] = public_key

    def refusal(self, error: asyncssh.HostKeyNotVerifiable) -> ConnectError:
        """Return the error for a key that was not accepted; it says what to do."""
        return ConnectError(self._refusal(error), is_permanent=True)

    def _refusal(self, error: asyncssh.HostKeyNotVerifiable) -> str:
        shown = "" if self._shown is None else f" ({_fingerprint(self._shown)})"
        listed = {kind: [key for key in self._known if key.kind == kind] for kind in ("key", "authority", "revoked")}
        if "revoked" in error.reason:
            return f"the host key is revoked by {_places(listed['revoked'])}"
        if listed["key"] and self._shown is not None:
            return (
                f"the host key has changed: the host shows another key{shown} than {_places(listed['key'])}. "
                f"If the host was installed anew, remove the old key: {self._removal(listed['key'][0])}. "
                "If it was not, another machine may answer in its place"
            )
        if self._shown is not None:
            return (
                f"the host key{shown} is not known, and StrictHostKeyChecking is yes; "
                "log in once with ssh, or add the key to known_hosts"
            )
        authorities = f" ({_places(listed['authority'])})" if listed["authority"] else ""
        return f"the certificate of the host is not valid{authorities}: {error.reason}"

    def _removal(self, known: KnownKey) -> str:
        if known.path is None:
            return "end this process and start it again"
        return f"ssh-keygen -R {shlex.quote(self._name)} -f {shlex.quote(str(known.path))}"

    def _keys(self, kind: str) -> list[asyncssh.SSHKey]:
        """Return the listed keys of a kind; those of types that asyncssh does not know are left out."""
        keys = []
        for known in self._known:
            if known.kind == kind:
                try:
                    keys.append(asyncssh.import_public_key(known.public_key))
                except asyncssh.KeyImportError:
                    continue
        return keys


_PLAIN_KEYS: Final = "-*cert*"
"""All types of host keys without certificates."""


def _places(keys: list[KnownKey]) -> str:
    return ", ".join(key.place for key in keys[:3]) + (", ..." if len(keys) > 3 else "")


def _fingerprint(public_key: str) -> str:
    return f"{public_key.split(maxsplit=1)[0]} {asyncssh.import_public_key(public_key).get_fingerprint()}"
