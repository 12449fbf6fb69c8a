"""What the SSH configuration (ssh_config(5)) says about one host, for connections by asyncssh."""

import getpass
from pathlib import Path
from typing import Any, Final

import asyncssh
from asyncssh.config import SSHClientConfig, SSHConfig
from attrs import frozen

from torc_framework.api import UserError
from torc_ssh.addresses import HostAddress, parse_address
from torc_ssh.connection.interface import ConnectError, SshSettings
from torc_ssh.connection.known_hosts import SSH_PORT

DEFAULT_FILES: Final = ("~/.ssh/config", "/etc/ssh/ssh_config")
_USER_KNOWN_HOSTS: Final = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS: Final = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_USUAL_IDENTITIES: Final = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
_HOST_KEY_CHECKING: Final = {"yes": "refuse", "no": "accept-all", "off": "accept-all"}


@frozen
class HostConfig:
    """The configuration of one host.

    Args:
        files: the configuration files that exist.
        host: the name or IP address to connect to.
        port: the TCP port.
        user: the user to log in as.
        jumps: the hosts of ``ProxyJump``, in the order of the connections.
        has_proxy_command: a program makes the connection (``ProxyCommand``).
        host_key_name: the name that known_hosts has for the host instead of ``host`` (``HostKeyAlias``).
        unknown_keys: ``accept-new``; ``refuse`` if ``StrictHostKeyChecking`` is yes; ``accept-all``, also changed keys,
            if it is no.
        known_hosts: files with host keys, those of the user first.
        accepted_keys_file: the file to which new host keys are appended; None for none.
        hashes_names: ``HashKnownHosts``.
        identities: files with private keys that exist; None if the configuration names none.
        certificates: files with user certificates that exist; None if the configuration names none.
        connect_timeout_s: ``ConnectTimeout``; 0 if not given.
        keepalive_interval_s: ``ServerAliveInterval``; 0 if not given.
        keepalive_count: ``ServerAliveCountMax``; 0 if not given.
        chooses_ciphers: ``Ciphers`` is given.
    """

    files: list[str]
    host: str
    port: int
    user: str
    jumps: list[HostAddress]
    has_proxy_command: bool
    host_key_name: str | None
    unknown_keys: str
    known_hosts: list[Path]
    accepted_keys_file: Path | None
    hashes_names: bool
    identities: list[str] | None
    certificates: list[str] | None
    connect_timeout_s: int
    keepalive_interval_s: int
    keepalive_count: int
    chooses_ciphers: bool


class _ClientConfig(SSHClientConfig):
    """The parser of asyncssh with two keywords that it ignores."""

    _handlers = {  # noqa: RUF012 - asyncssh declares it so
        **SSHClientConfig._handlers,
        "stricthostkeychecking": ("StrictHostKeyChecking", SSHConfig._set_string),
        "hashknownhosts": ("HashKnownHosts", SSHConfig._set_bool),
    }


def read_host_config(address: HostAddress, settings: SshSettings) -> HostConfig:
    """Return the configuration of a host; reads files and may run programs (``Match exec``).

    Raises:
        ConnectError: a file has an error; the reason names file and line.
    """
    try:
        files = _files(settings)
        read = _load(files, address)
        return _host_config(files, read, address)
    except (OSError, ValueError, UserError) as error:
        problem = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        raise ConnectError(f"SSH configuration: {problem}", is_permanent=True) from None


def _files(settings: SshSettings) -> list[str]:
    """Return the configuration files: those of ``settings``, which have to exist, or the usual ones that exist."""
    if settings.config_files is not None:
        return [str(path) for path in settings.config_files]
    usual = [Path(name).expanduser() for name in DEFAULT_FILES]
    return [str(path) for path in usual if path.is_file()]


def _load(files: list[str], address: HostAddress) -> SSHClientConfig:
    who: tuple[Any, ...] = (getpass.getuser(), address.user or (), address.host, address.port or ())
    config = _ClientConfig.load(None, files, False, False, False, *who)
    if config.has_match_final():
        config = _ClientConfig.load(config, files, True, False, True, *who)
    assert isinstance(config, SSHClientConfig)
    return config


def _host_config(files: list[str], config: SSHClientConfig, address: HostAddress) -> HostConfig:
    """Return the configuration from the values that the files have for a host."""

    def value(name: str, default: Any) -> Any:
        found = config.get(name)
        return default if found is None else found

    user_files = _paths(value("UserKnownHostsFile", _USER_KNOWN_HOSTS))
    identities, certificates = config.get("IdentityFile"), config.get("CertificateFile")
    usable = [name for name in _names(identities or ()) if _is_usable(name, bool(value("IdentitiesOnly", False)))]
    return HostConfig(
        files=files,
        host=str(value("Hostname", address.host)),
        port=int(value("Port", SSH_PORT)),
        user=str(value("User", getpass.getuser())),
        jumps=_jumps(config.get("ProxyJump")),
        has_proxy_command=config.get("ProxyCommand") is not None,
        host_key_name=config.get("HostKeyAlias"),  # type: ignore[arg-type] # the parser gives a text or None
        unknown_keys=_HOST_KEY_CHECKING.get(str(value("StrictHostKeyChecking", "")).lower(), "accept-new"),
        known_hosts=user_files + _paths(value("GlobalKnownHostsFile", _GLOBAL_KNOWN_HOSTS)),
        accepted_keys_file=user_files[0] if user_files else None,
        hashes_names=bool(value("HashKnownHosts", False)),
        identities=None if identities is None else usable,
        certificates=None if certificates is None else [name for name in _names(certificates) if Path(name).is_file()],
        connect_timeout_s=int(value("ConnectTimeout", 0)),
        keepalive_interval_s=int(value("ServerAliveInterval", 0)),
        keepalive_count=int(value("ServerAliveCountMax", 0)),
        chooses_ciphers=config.get("Ciphers") is not None,
    )


def _paths(names: Any) -> list[Path]:
    return [Path(name).expanduser() for name in names]


def _names(names: Any) -> list[str]:
    return [str(Path(name).expanduser()) for name in names]


def _is_usable(identity: str, only_named: bool) -> bool:
    """Return whether a file contains a private key, or a public key that chooses one of the agent's.

    ssh ignores other files, and asyncssh raises an exception for them.
    """
    try:
        with Path(identity).open("rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    return b"PRIVATE KEY" in start or only_named


def _jumps(value: object) -> list[HostAddress]:
    """Return the hosts of ``ProxyJump``, each ``[user@]host[:port]`` or ``ssh://[user@]host[:port]``."""
    texts = str(value).split(",") if value else []
    try:
        return [parse_address(text.strip().removeprefix("ssh://").rstrip("/")) for text in texts]
    except UserError as error:
        raise UserError(f"ProxyJump {value}: {error}") from None


def encrypted_identities(config: HostConfig) -> list[str]:
    """Return the private keys that cannot be used because they need a passphrase; reads files."""
    found = []
    for name in _names(_USUAL_IDENTITIES) if config.identities is None else config.identities:
        try:
            asyncssh.read_private_key(name)
        except asyncssh.KeyImportError as error:
            if "assphrase" in str(error):
                found.append(name)
        except OSError:
            continue
    return found
