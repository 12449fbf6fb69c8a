"""What the screens are started with."""

import threading
from concurrent.futures import Future
from http import HTTPStatus

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, UserError
from torc_framework.models.progress import WorkflowOverview
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import Identity, UpstreamServer
from torc_framework.monitoring.standalone import StandaloneServer
from torc_framework.tui.tables.server_state import ServerContact
from torc_framework.tui.tables.workflow_list import place_of_workflow, read_workflows
from torc_framework.tui.work.commands import ChildCommands
from torc_framework.tui.work.rights import UserRights


@define(eq=False)
class TuiSetup:
    """The server, who uses it, and what is shown first.

    Attributes:
        server: The server of this program; it is started at once if ``starts_server`` is true, else by a key.
        user: Whose workflows are listed; None is everyone's.
        own_user: The user of this process.
        wanted_id: The workflow that is selected first; None is the newest one.
        refused: Why there is nothing to show, such as that there is no such workflow.
        rights: What the person may do, as far as that is known.
    """

    context: WorkContext
    upstream: UpstreamServer
    identity: Identity
    server: StandaloneServer
    starts_server: bool
    own_user: str
    user: str | None
    wanted_id: int | None = None
    refused: Exception | None = None
    state: ServerContact = field(factory=ServerContact)
    rights: UserRights = field(factory=UserRights)
    commands: ChildCommands = field(init=False)
    _begun: threading.Event = field(factory=threading.Event, init=False)
    _first_error: Exception | None = field(default=None, init=False)
    _first_page: "Future[tuple[list[WorkflowOverview], int]] | None" = field(default=None, init=False)
    _wanted_place: int | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.commands = ChildCommands(self.context, self.identity)

    def begin(self) -> None:
        """Start the server in a thread and ask for the first page of workflows, while the screens are imported."""
        answer: Future[tuple[list[WorkflowOverview], int]] = Future()
        self._first_page = answer
        threading.Thread(target=self._begin, args=(answer,), name="torc-tui-start", daemon=True).start()

    def _begin(self, answer: "Future[tuple[list[WorkflowOverview], int]]") -> None:
        try:
            if self.starts_server:
                self.server.start()
        except Exception as error:  # the first request raises it, of any kind
            self._first_error = error
        finally:
            self._begun.set()
        try:
            answer.set_result(self._read(self.identity.client, 0))
        except Exception as error:  # the screens show it, of any kind
            answer.set_exception(error)

    def workflows(self, client: TorcClient, page: int) -> tuple[list[WorkflowOverview], int]:
        """Return a page of the list of workflows, and their number.

        Raises:
            TorcError: the server did not answer, or refused.
        """
        first, self._first_page = self._first_page, None
        return self._read(client, page) if first is None else first.result()

    def _read(self, client: TorcClient, page: int) -> tuple[list[WorkflowOverview], int]:
        if self.wanted_id is not None:
            self._find_wanted(client, self.wanted_id)
        return read_workflows(client, self.user, page)

    def _find_wanted(self, client: TorcClient, workflow_id: int) -> None:
        """Note where in the list the wanted workflow is; list those of all users if it is another one's.

        Raises:
            ApiError: there is no such workflow, or the user has no access to it.
            UserError: it is archived.
        """
        found = client.progress(workflow_id).overview
        if found.is_archived:
            raise UserError(
                f"workflow {workflow_id} is archived; to list it: torc workflows archive false {workflow_id}"
            )
        if found.workflow.user != self.user:
            self.user = None
        self._wanted_place = place_of_workflow(client, self.user, workflow_id)
        self.wanted_id = None

    def refuses(self, error: Exception) -> bool:
        """Return whether an error of the list says that the wanted workflow cannot be shown; note it if so."""
        is_about_it = isinstance(error, UserError) or (isinstance(error, ApiError) and error.status in (403, 404))
        if self.wanted_id is not None and is_about_it:
            self.refused = error
        return self.refused is not None

    def take_wanted_place(self) -> int | None:
        """Return where in the list the wanted workflow is, once; None if it is not known, or was taken before."""
        place, self._wanted_place = self._wanted_place, None
        return place

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

    @property
    def has_server(self) -> bool:
        """Whether there is a server that may answer: one of another program, or one of this program that runs."""
        if not self._begun.is_set():
            return True
        facts = self.server.as_dict()
        has_ended = facts["pid"] is not None and not facts["running"]
        return self.upstream.base is not None and not (has_ended and self.state.away_since is not None)

    def close(self) -> None:
        """End commands as they have to, and the server of this program."""
        self.commands.close(stops_long=self.server.as_dict()["running"])
        self.server.stop()


def is_deleted(error: Exception, workflow_id: int | None) -> bool:
    """Return whether a request failed because the workflow that it is about was deleted meanwhile."""
    is_missing = isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND
    return is_missing and str(error).startswith(f"Workflow not found with ID: {workflow_id}")
