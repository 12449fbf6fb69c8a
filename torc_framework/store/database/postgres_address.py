"""The address of a PostgreSQL database, and its name in messages; needs the driver, not SQLAlchemy.

The URL is that of PostgreSQL's own programs (``postgresql://user@host:port/name?option=value``, "Connection URIs" in
the manual), so that several hosts, certificates and service files work here too.
"""

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from torc_framework.distributions import require_extra
from torc_framework.store.errors import DatabaseAwayError, DatabaseError
from torc_framework.store.migrations import VERSION_TABLE

if TYPE_CHECKING:
    import psycopg

_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "torc",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""Options of a connection that the URL does not set; the driver notices a lost host within a minute, not after hours.
"""
_ENCODING: Final = "UTF8"
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
_SECRET_OPTIONS: Final = ("password", "sslpassword")


@frozen
class PostgresAddress:
    """A database on a server.

    Attributes:
        name: The URL for messages: without password and options.
    """

    _url: str = field(repr=False)
    _options: dict[str, Any] = field(repr=False)
    name: str

    @classmethod
    def parse(cls, url: str) -> "PostgresAddress":
        """Return the address in a URL; ``postgresql+psycopg:`` means the same as ``postgresql:``.

        Raises:
            DatabaseError: it is no URL of PostgreSQL, or the driver is not installed.
        """
        scheme, _, rest = url.partition(":")
        plain = f"{scheme.removesuffix('+psycopg')}:{rest}"
        require_extra("postgres", "psycopg", "PostgreSQL", DatabaseError)
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        if not rest.startswith("//"):
            raise DatabaseError(f"cannot use this {scheme}: database: expected {scheme}://user@host:port/name")
        try:
            options = conninfo_to_dict(plain)
        except ProgrammingError as error:
            reason = _one_line(str(error)).partition(": ")[0]  # the URL, or a part of it, follows
            raise DatabaseError(f"cannot use this {scheme}: database: {reason}") from None
        if any("@" in str(options.get(part, "")) for part in ("host", "port", "dbname")):
            raise DatabaseError(
                f"cannot use this {scheme}: database: its user or password has characters that a URL must have "
                "in their encoded form, such as %40 for @ and %2F for /"
            )
        return cls(plain, options, _name(options))

    def connect(self) -> "psycopg.Connection[Any]":
        """Return a new connection; the caller begins its transactions."""
        import psycopg

        return psycopg.connect(
            self._url,
            autocommit=True,
            client_encoding=_ENCODING,
            **{name: value for name, value in _DEFAULTS.items() if name not in self._options},
        )

    def tables_and_version(self) -> tuple[list[str], str | None]:
        """Return the names of the database's tables, and its version, None if it belongs to another program.

        Raises:
            DatabaseAwayError: its server does not answer.
            DatabaseError: it cannot be opened, its encoding is not UTF-8, or the driver uses a libpq before 14.
        """
        import psycopg

        try:
            psycopg.capabilities.has_pipeline(check=True)
            with closing(self.connect()) as connection:
                (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
                if encoding != _ENCODING:
                    raise DatabaseError(
                        f"cannot use database {self.name}: its encoding is {encoding}; make it with ENCODING 'UTF8'"
                    )
                names = [row[0] for row in connection.execute(_TABLES)]
                if VERSION_TABLE not in names:
                    return names, None
                found = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
                return names, None if found is None else str(found[0])
        except psycopg.Error as error:
            kind = DatabaseAwayError if self._is_away() else DatabaseError
            raise kind(f"cannot open database {self.name}: {self.reason(error)}") from None

    def _is_away(self) -> bool:
        """Return whether the hosts are known and none of them has a server that takes connections."""
        from psycopg.pq import PGconn, Ping

        hosts = [host for host in str(self._options.get("host") or "").split(",") if host and not host.startswith("/")]
        try:
            for host in hosts:
                socket.getaddrinfo(host, None)
        except OSError:
            return False
        return PGconn.ping(self._url.encode()) in (Ping.REJECT, Ping.NO_RESPONSE)

    def reason(self, error: Exception) -> str:
        """Return the driver's message in one line, without the password."""
        text = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        for secret in _SECRET_OPTIONS:
            if value := self._options.get(secret):
                text = text.replace(str(value), "***")
        return _one_line(text.replace(self._url, self.name))


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _name(options: dict[str, Any]) -> str:
    """Return the URL without passwords."""
    user, host, port = (str(options.get(part) or "") for part in ("user", "host", "port"))
    if host.startswith("/"):  # a Unix socket in this folder
        host = port = ""
    return f"postgresql://{user}{'@' * bool(user)}{host}{':' * bool(port)}{port}/{options.get('dbname') or ''}"
