"""How a runner on a host reaches the server: its environment, and the address of the server through a tunnel."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from attrs import frozen

from torc_framework.api import UserError

URL: Final = "TORC_API_URL"
PASSWORD: Final = "TORC_PASSWORD"
PASSWORD_FILE: Final = "TORC_PASSWORD_FILE"
TLS_CA: Final = "TORC_TLS_CA"
_PORTS: Final = {"http": 80, "https": 443}


@frozen
class ServerAccess:
    """What a runner on another machine needs to use the server as the same user.

    Attributes:
        environment: Environment variables. They hold the password and are secret.
        tls_ca: File with certificates here, whose copy on the host ``TORC_TLS_CA`` has to name; None if there is none.
    """

    environment: Mapping[str, str]
    tls_ca: Path | None

    @classmethod
    def of_client(cls, environment: Mapping[str, str], *, for_tunnel: bool) -> "ServerAccess":
        """Return the access that the environment of a client describes.

        Raises:
            UserError: the certificates are a folder, the password file cannot be read, or a tunnel is wanted to a
                server whose certificate does not hold for the end of the tunnel.
        """
        variables = dict(environment)
        file = variables.pop(PASSWORD_FILE, None)
        if file is not None:  # the path means nothing on another machine
            try:
                variables[PASSWORD] = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as error:
                raise UserError(f"cannot read the password file {file}: {error.strerror}") from None
        ca = variables.pop(TLS_CA, None)
        if ca is not None and not Path(ca).is_file():
            raise UserError(f"{TLS_CA} is {ca}; runners on other machines need a file with certificates")
        access = cls(variables, None if ca is None else Path(ca))
        if (
            for_tunnel
            and urlsplit(access.url).scheme == "https"
            and not (access.is_loopback and ":" not in access.host)
        ):
            raise UserError(
                f"--tunnel: runners would reach {access.url} as https://localhost, for which its certificate does not "
                "hold; without --tunnel they reach it directly"
            )
        return access

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return self.environment[URL]

    @property
    def host(self) -> str:
        """Host of the server as this machine reaches it."""
        return urlsplit(self.url).hostname or "127.0.0.1"

    @property
    def port(self) -> int:
        """Port of the server as this machine reaches it."""
        parts = urlsplit(self.url)
        return parts.port or _PORTS.get(parts.scheme, 80)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach the server at its address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")

    def through_port(self, port: int) -> dict[str, str]:
        """Return the environment of a runner that reaches the server at a port of its own machine."""
        parts = urlsplit(self.url)
        host = "127.0.0.1" if parts.scheme == "http" else self.host
        return {**self.environment, URL: urlunsplit(parts._replace(netloc=f"{host}:{port}"))}
