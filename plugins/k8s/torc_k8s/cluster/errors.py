"""Refusals and failures of a cluster, each as one sentence that names the fix where it is known."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from torc_framework.api import ServerUnreachableError, TorcError
from torc_k8s.cluster.rights import CLUSTER_RIGHTS

MESSAGE_LIMIT: Final = 2_000
"""Most characters of a message of the cluster that a sentence repeats."""


class ClusterError(TorcError):
    """The cluster refused a request.

    Args:
        text: One sentence for a person.
        status: HTTP status; 0 where there was none.
        reason: The reason of the ``Status`` object, such as ``AlreadyExists``; may be empty.
        message: The message of the cluster, as it was sent but for its length.
        retry_after_s: The seconds after which the cluster wants to be asked again, if it named them.
    """

    def __init__(
        self, text: str, *, status: int = 0, reason: str = "", message: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.status, self.reason, self.message, self.retry_after_s = status, reason, message, retry_after_s

    @property
    def is_quota(self) -> bool:
        """The request is more than what a ResourceQuota leaves; the same request may succeed later."""
        return self.status == 403 and "exceeded quota" in self.message


class ClusterUnreachable(ClusterError):  # noqa: N818 - a name of the state, as ServerUnreachableError would be taken for the torc server's
    """The cluster serves nothing at present: no connection, TLS, time-out, overload, credentials that are refused.

    The same request may succeed later without a change to it. Whether the cluster has received it is not known.
    """

    exit_status = ServerUnreachableError.exit_status


class NotStarted(ClusterError):  # noqa: N818 - a state of the container, not an error of the program
    """A log was requested of a container that has not started."""


class Expired(ClusterError):  # noqa: N818 - the name of the reason in the API
    """A watch or a page begins at a state that the cluster no longer keeps (410): list again."""


def refusal(status: int, body: bytes, *, account: str, where: str, retry_after_s: float | None = None) -> ClusterError:
    """Return the error for an answer with a status of 400 and more.

    Args:
        status: HTTP status.
        body: The answer, a ``Status`` object or any text.
        account: The account or context whose credentials were sent, for the sentence on 401.
        where: The cluster, for sentences.
        retry_after_s: The header ``Retry-After``.
    """
    reason, message = _status_object(body)
    values: dict[str, Any] = {
        "status": status,
        "reason": reason,
        "message": message,
        "retry_after_s": retry_after_s,
    }
    if status == 400 and _WAITING.search(message):
        return NotStarted(message, **values)
    if status == 410:
        return Expired(f"{where} no longer keeps the requested state: {message}", **values)
    if status == 401:
        return ClusterUnreachable(f"{where} refuses the credentials of {account} (401): {_LOG_IN}", **values)
    if status in {408, 429} or status >= 500:
        return ClusterUnreachable(f"{where} cannot answer at present: {message} ({status})", **values)
    if status == 403:
        return ClusterError(_forbidden(message, where), **values)
    return ClusterError(f"{where}: {message} ({status})", **values)


_LOG_IN: Final = (
    "they have expired or belong to another cluster. Log in again, or choose another context with --context"
)
_WAITING: Final = re.compile(r"is waiting to start|is not available|trying and failing to pull image|PodInitializing")
_DENIED: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)"'
    r'(?: in API group "(?P<group>[^"]*)")?(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def _status_object(body: bytes) -> tuple[str, str]:
    """Return reason and message of an answer; text that is not a ``Status`` object is the message."""
    try:
        status = json.loads(body)
        reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    except (ValueError, AttributeError, RecursionError):
        reason, message = "", body.decode(errors="replace")
    return reason[:100], one_line(message) or "no message"


def one_line(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return a text in one line of at most so many characters, without control characters."""
    line = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    line = " ".join(line.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _forbidden(message: str, where: str) -> str:
    """Return the sentence for 403: a Role that lacks a verb, or one of the controls at admission."""
    denied = _DENIED.search(message)
    if denied:
        space = f" in namespace {denied['namespace']}" if denied["namespace"] else ""
        of_cluster = any(denied["resource"] == right.resource for right in CLUSTER_RIGHTS)
        role = "ClusterRole in 'torc k8s manifests nodes-role'" if of_cluster else "Role in 'torc k8s manifests role'"
        return (
            f"account {denied['user']} may not {denied['verb']} {denied['resource']}{space} of {where}; "
            f"the {role} grants it, and 'torc k8s check' shows what else is missing"
        )
    for pattern, text in _ADMISSION:
        if re.search(pattern, message):
            return text(message)
    return f"{where} forbids it: {message}"


_ADMISSION: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    (r"exceeded quota", lambda message: f"the quota of the namespace is used up: {message}"),
    (r"because it is being terminated", lambda message: f"the namespace is being deleted: {message}"),
    (r"no PriorityClass", lambda message: f"the priority class does not exist: {message}"),
    (r"error looking up service account", lambda message: f"the service account does not exist: {message}"),
    (r"violates PodSecurity", lambda message: f"the namespace's security level forbids the pod: {message}"),
    (
        r"(maximum|minimum) \S+ usage per|must specify",
        lambda message: f"a LimitRange or quota of the namespace forbids the pod: {message}",
    ),
)
