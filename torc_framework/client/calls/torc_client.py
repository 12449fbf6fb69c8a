"""`TorcClient`: the server's endpoints as methods that take and return the records of `torc_framework.models`."""

from pathlib import Path
from typing import Any, Self

from torc_framework.client.calls.access_groups import AccessCalls
from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S, ClientBase
from torc_framework.client.calls.jobs import JobCalls
from torc_framework.client.calls.paging import JsonObject
from torc_framework.client.calls.recoveries import RecoveryCalls
from torc_framework.client.calls.runners import RunnerCalls
from torc_framework.client.calls.views import ViewCalls
from torc_framework.client.calls.workflows import WorkflowCalls
from torc_framework.client.http.request_sender import RequestSender
from torc_framework.client.http.transport import Transport


class TorcClient(WorkflowCalls, RunnerCalls, JobCalls, ViewCalls, RecoveryCalls, AccessCalls):
    """A client of one server.

    It may be used from several threads at once, and as a context that closes its connections. Responses are validated
    against the records' types; fields that this version does not know are ignored.

    Args:
        url: Base URL, with or without the path ``/torc-service/v1``; may hold ``user:password@``.
        timeout: Seconds that a request may wait for the server, unless its method has a timeout of its own.
        username: User name, on a server with passwords.
        password: Password.
        password_file: File with the password if ``password`` is None; only its owner may have access to it.
        patience: Seconds for which a failed request is repeated where that is safe. GET, PUT and DELETE are repeated; a
            POST is repeated only if the server did not carry it out. 0 repeats none.
        tls_ca: File or folder of certificates to trust besides the system's, for https.
        verify_tls: Refuse https servers whose certificate is not trusted or is for another host.

    Every method may raise ServerUnreachableError (no response) or ApiError (the server refused).
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        username: str | None = None,
        password: str | None = None,
        password_file: str | Path | None = None,
        patience: float = 0.0,
        tls_ca: str | Path | None = None,
        verify_tls: bool = True,
    ) -> None:
        super().__init__(
            Transport(
                url,
                timeout=timeout,
                username=username,
                password=password,
                password_file=password_file,
                patience=patience,
                tls_ca=tls_ca,
                verify_tls=verify_tls,
            )
        )

    @classmethod
    def over(cls, sender: RequestSender) -> Self:
        """Return a client whose requests another object carries than a `Transport` of its own."""
        client = cls.__new__(cls)
        ClientBase.__init__(client, sender)
        return client

    def ping(self) -> dict[str, Any]:
        """Return the server's response to a ping."""
        return self._call(JsonObject, "GET", "/ping")

    def version(self) -> str:
        """Return the server's version text."""
        return self._call(str, "GET", "/version")
