"""Names, labels and annotations of pods, which are the same for every try to create a pod.

Sources: Kubernetes, "Object Names and IDs", "Labels and Selectors" and "Finalizers".
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from torc_framework.api import AttemptKey

MAIN: Final = "main"
"""Name of the container that runs the job."""
FINALIZER: Final = "torc-framework/end-stored"
"""Keeps a deleted pod readable until the server has stored its end."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
SCOPE: Final = "torc-scope"
WORKFLOW: Final = "torc-workflow"
JOB: Final = "torc-job"
ATTEMPT: Final = "torc-attempt"
MEMBER: Final = "torc-member"
RETRY: Final = "torc-retry"
LABELS: Final = (MANAGED_BY, SCOPE, WORKFLOW, JOB, ATTEMPT, MEMBER, RETRY)
"""Labels that only torc sets."""
ANNOTATION_PREFIX: Final = "torc-framework/"
STDOUT: Final = "torc-framework/stdout"
STDERR: Final = "torc-framework/stderr"
JOB_NAME: Final = "torc-framework/job-name"
_SCOPE_TEXT: Final = re.compile(r"[0-9a-f]{1,40}")
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")


def pod_name(scope: str, key: AttemptKey, member: int = 0, retry: int = 0) -> str:
    """Return the name of an attempt's pod, which is the same whenever it is asked for.

    Args:
        scope: Identifies the runner: hexadecimal digits.
        key: The attempt.
        member: Rank of the pod within its group; 0 is the only or the leading pod.
        retry: How often this member was started again within the attempt.
    """
    name = f"torc-{scope}-j{key.job_id}-a{key.attempt_id}"
    return name + (f"-m{member}" if member else "") + (f"-r{retry}" if retry else "")


def pod_labels(scope: str, workflow_id: int, key: AttemptKey, member: int = 0, retry: int = 0) -> dict[str, str]:
    """Return the labels by which an attempt's pod is found again."""
    return {
        MANAGED_BY: "torc",
        SCOPE: scope,
        WORKFLOW: str(workflow_id),
        JOB: str(key.job_id),
        ATTEMPT: str(key.attempt_id),
        MEMBER: str(member),
        RETRY: str(retry),
    }


def selector(scope: str = "", workflow_id: int | None = None) -> str:
    """Return the label selector of torc's pods: of one runner, of one workflow, or of all."""
    parts = [f"{MANAGED_BY}=torc"]
    if scope:
        if not _SCOPE_TEXT.fullmatch(scope):
            raise ValueError(f"{scope!r} is no scope of a runner: expected hexadecimal digits")
        parts.append(f"{SCOPE}={scope}")
    if workflow_id is not None:
        parts.append(f"{WORKFLOW}={workflow_id}")
    return ",".join(parts)


def key_of(labels: Mapping[str, Any]) -> AttemptKey | None:
    """Return the attempt that a pod's labels name; None for a pod that torc did not make."""
    if labels.get(MANAGED_BY) != "torc":
        return None
    numbers = number_of(labels, JOB), number_of(labels, ATTEMPT)
    return AttemptKey(numbers[0], numbers[1]) if numbers[0] is not None and numbers[1] is not None else None


def number_of(labels: Mapping[str, Any], label: str) -> int | None:
    """Return the number in a label; None if there is none."""
    text = labels.get(label)
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19 else None


def label_problem(key: str, value: Any) -> str | None:
    """Return what is wrong with a label or an entry of a node selector; None if it is valid."""
    if (problem := key_problem(key)) is not None:
        return problem
    if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
        return (
            f"the value of {key!r} is {_short(value)}; a label's value has at most 63 letters, digits, '-', '_' and '.'"
        )
    return None


def key_problem(key: Any) -> str | None:
    """Return what is wrong with the key of a label or annotation, such as ``example.com/disk``; None if it is valid."""
    prefix, slash, name = key.rpartition("/") if isinstance(key, str) else ("", "", "")
    is_valid = len(name) <= 63 and _LABEL_NAME.fullmatch(name) and (not slash or _is_subdomain(prefix))
    return None if is_valid else f"{_short(key)} is no key of a label: expected a name such as disk or example.com/disk"


def name_problem(name: Any) -> str | None:
    """Return what is wrong with the name of an object, such as a claim or a secret; None if it is valid."""
    if isinstance(name, str) and _is_subdomain(name):
        return None
    return f"{_short(name)} is no name of a Kubernetes object: expected lower-case letters, digits, '-' and '.'"


def _is_subdomain(text: str) -> bool:
    return len(text) <= 253 and all(_DNS_LABEL.fullmatch(part) for part in text.split("."))


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:76] + "...'"
