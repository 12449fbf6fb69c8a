"""What the screens are started with."""

import threading

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import Identity, UpstreamServer
from torc_framework.monitoring.standalone import StandaloneServer
from torc_framework.tui.tables.server_state import ServerContact
from torc_framework.tui.work.commands import ChildCommands


@define(eq=False)
class TuiSetup:
    """The server, who uses it, and what is shown first.

    Attributes:
        server: The server of this program; it is started at once if ``starts_server`` is true, else by a key.
        user: Whose workflows are listed; None is everyone's.
        own_user: The user of this process.
    """

    context: WorkContext
    upstream: UpstreamServer
    identity: Identity
    server: StandaloneServer
    starts_server: bool
    own_user: str
    user: str | None
    state: ServerContact = field(factory=ServerContact)
    commands: ChildCommands = field(init=False)
    _begun: threading.Event = field(factory=threading.Event, init=False)
    _first_error: Exception | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.commands = ChildCommands(self.context, self.identity)

    def begin(self) -> None:
        """Start the server in a thread, while the screens are imported."""
        threading.Thread(target=self._begin, name="torc-tui-start", daemon=True).start()

    def _begin(self) -> None:
        try:
            if self.starts_server:
                self.server.start()
        except Exception as error:  # whatever it is, the first request raises it
            self._first_error = error
        finally:
            self._begun.set()

    def client(self) -> TorcClient:
        """Return the client; wait until the server of this program listens.

        Raises:
            ServerUnreachableError: there is no server now.
            TorcError: the server of this program could not be started.
        """
        self._begun.wait()
        error, self._first_error = self._first_error, None
        if error is not None:
            raise error
        return self.identity.client

    def close(self) -> None:
        """End commands as they have to, and the server of this program."""
        self.commands.close(stops_long=self.server.as_dict()["running"])
        self.server.stop()
