"""What a server is started with."""

from attrs import frozen

DEFAULT_PORT = 8080
"""Port of ``torc-server run`` when none is given."""
API_PREFIX = "/torc-service/v1"
"""Path under which every endpoint lives."""


@frozen
class ServerSettings:
    """Where the server listens, where it keeps its database, how much it says.

    Attributes:
        host: Name or address to listen on.
        port: Port to listen on; 0 takes a free one and prints ``TORC_SERVER_PORT=n`` first on stdout.
        database: Plain path of the database file, or a ``sqlite:`` URL.
        log_level: debug, info, warning or error.
        completion_check_interval_secs: Accepted for compatibility; dependents are unblocked at once.
        parent_fd: Inherited pipe; its end of file stops the server, so that it never outlives its parent.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    database: str = "torc.db"
    log_level: str = "info"
    completion_check_interval_secs: float = 30.0
    parent_fd: int | None = None
