"""The server's endpoints as methods that take and return the records of `torc_framework.models`."""

from pathlib import Path
from typing import Any

from torc_framework.client.calls.access_groups import AccessCalls
from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S
from torc_framework.client.calls.jobs import JobCalls
from torc_framework.client.calls.paging import JsonObject
from torc_framework.client.calls.recoveries import RecoveryCalls
from torc_framework.client.calls.workflows import WorkflowCalls
from torc_framework.client.http.transport import Transport


class TorcClient(WorkflowCalls, JobCalls, RecoveryCalls, AccessCalls):
    """Speaks to one server.

    May be used from several threads at once, and as a context that closes its connections. Answers
    are checked against the records' types; fields that this version does not know are ignored.

    Args:
        url: Base URL, with or without the path ``/torc-service/v1``, perhaps with ``user:password@``.
        password_file: File that holds the password, unless ``password`` gives it; only its owner may have access.
        timeout: Seconds a request may wait for the server, unless its method says otherwise.
        patience: Seconds in which a request that failed is sent again where that can do no harm. Reading,
            changing and deleting are repeated; what would be done twice is repeated only if it did not
            reach the server. 0 is never.
        tls_ca: File or folder with certificates to trust besides the system's, for https.
        verify_tls: Refuse https servers whose certificate is not trusted or names another host.

    Every method may raise ServerUnreachableError (no answer) or ApiError (the server said no).
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

    def ping(self) -> dict[str, Any]:
        """Return the server's word that it is well."""
        return self._call(JsonObject, "GET", "/ping")

    def version(self) -> str:
        """Return the server's version text."""
        return self._call(str, "GET", "/version")
