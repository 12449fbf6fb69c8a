"""The server's settings: the section ``[server]`` of configuration files, and the flags of ``torc-server run``."""

from pathlib import Path

from attrs import field, frozen

from torc_framework.models.settings import LOG_LEVELS, setting

DEFAULT_PORT = 8080
"""Port of ``torc-server run`` without ``--port``."""
API_PREFIX = "/torc-service/v1"
"""Path below which all endpoints are."""

TOKEN_VARIABLE = "TORC_SERVER_TOKEN"
"""Environment variable that passes the token to an embedded server."""

DATABASE_VARIABLE = "TORC_SERVER_DATABASE"
"""Environment variable that passes the database to an embedded server; a flag would show a password in its URL."""


@frozen
class LoggingSettings:
    """Settings of the server's log file."""

    log_dir: Path | None = setting(
        None,
        "Folder for torc-server.log, which is rotated at 10 MiB; five older files are kept.",
        variables=("TORC_LOG_DIR",),
        metavar="DIR",
    )
    json_logs: bool = setting(False, "Lines of the log file are JSON objects.")


@frozen
class LimitSettings:
    """Limits on what one client may use; the server refuses a client that goes beyond them."""

    body_mib: int = setting(64, "Largest request, except for a plan in parts.", unit="MiB", low=1)
    plan_mib: int = setting(1024, "Largest plan in parts; of some million jobs.", unit="MiB", low=1)
    header_kib: int = setting(64, "Longest request line with its headers.", unit="KiB", low=1)
    stall_secs: float = setting(
        60.0,
        "Seconds after which a client is disconnected that sends or reads nothing within a request.",
        unit="s",
        low=0.1,
    )
    connections_per_address: int = setting(2000, "Connections open at once from one address; 0 is no limit.", low=0)
    streams_per_address: int = setting(100, "Event streams open at once from one address; 0 is no limit.", low=0)
    unread_mib_per_address: int = setting(
        512,
        "Answers that clients at one address have not read, which are kept in files; with more, the address gets no "
        "further large answer.",
        unit="MiB",
        low=1,
    )
    heartbeat_secs: float = setting(
        15.0, "Interval of the heartbeats of an event stream without events.", unit="s", low=0.1
    )


@frozen
class ServerSettings:
    """Settings of the server: address, database, log level, encryption, authentication and limits.

    Attributes:
        parent_fd: Inherited pipe; its end of file stops the server, so that it does not outlive its parent.
        token: Secret that every path must begin with, after ``/~``.
    """

    url: str = setting("127.0.0.1", "Name or address to listen on.", flags=("-u", "--url", "--host"), metavar="HOST")
    port: int = setting(
        DEFAULT_PORT,
        "Port; 0 takes a free one and prints it.",
        low=0,
        high=65_535,
        flags=("-p", "--port"),
        metavar="PORT",
    )
    database: str = setting(
        "torc.db",
        "Database: the path of a file, or a sqlite: or postgresql: URL.",
        variables=("DATABASE_URL",),
        flags=("-d", "--database"),
        metavar="PATH",
    )
    log_level: str = setting(
        "info",
        "Lowest level of the messages that are logged.",
        choices=LOG_LEVELS,
        variables=("RUST_LOG",),
        flags=("-l", "--log-level"),
        metavar="LEVEL",
    )
    https: bool = setting(False, "Serve HTTPS; needs a certificate and its key.")
    tls_cert: Path | None = setting(
        None, "Certificate chain, a PEM file; the server's own comes first.", metavar="FILE"
    )
    tls_key: Path | None = setting(None, "Private key of the certificate, an unencrypted PEM file.", metavar="FILE")
    threads: int | None = setting(
        None,
        "Most requests that are processed at the same time; by default 40.",
        low=1,
        flags=("-t", "--threads"),
        metavar="N",
    )
    completion_check_interval_secs: float = setting(
        30.0,
        "Accepted for compatibility; dependents are unblocked at once.",
        unit="s",
        low=0,
        variables=("TORC_COMPLETION_CHECK_INTERVAL_SECS",),
        flags=("-c", "--completion-check-interval-secs"),
        metavar="SECONDS",
    )
    auth_file: Path | None = setting(
        None,
        "Users and their passwords: an htpasswd file with bcrypt hashes; see torc-htpasswd.",
        variables=("TORC_AUTH_FILE",),
        metavar="FILE",
    )
    require_auth: bool = setting(False, "Refuse requests without user and password.")
    credential_cache_ttl_secs: float = setting(
        60.0,
        "Time for which a right password is not checked again; 0 checks each time.",
        unit="s",
        low=0,
        variables=("TORC_CREDENTIAL_CACHE_TTL_SECS",),
    )
    enforce_access_control: bool = setting(
        False, "Users see and change only their own workflows and those shared with one of their groups."
    )
    admin_users: tuple[str, ...] = setting(
        (),
        "Administrators, who may use all workflows and manage access groups; repeat, or separate by commas.",
        variables=("TORC_ADMIN_USERS",),
        flags=("--admin-user",),
        metavar="USER",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "Further host names that browsers may use for the server, such as that of a proxy in front of it.",
        flags=("--allowed-host",),
        metavar="NAME",
    )
    open_metrics: bool = setting(False, "Everyone may read /metrics, also with access control.")
    logging: LoggingSettings = field(factory=LoggingSettings)
    limits: LimitSettings = field(factory=LimitSettings)
    parent_fd: int | None = None
    token: str | None = field(default=None, repr=False)
