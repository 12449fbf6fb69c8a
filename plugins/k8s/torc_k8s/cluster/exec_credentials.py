"""Credentials from a program that a kubeconfig names (``exec``), as those of cloud providers.

Source: Kubernetes documentation, "client-go credential plugins". The loader of the Python client waits for the program
without a limit and goes on without credentials when it fails.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from attrs import field, frozen

from torc_framework.api import ConfigError
from torc_k8s.cluster.errors import ClusterUnreachable, one_line

ANSWER_LIMIT: Final = 1024 * 1024
"""Most bytes of the answer of the program."""
PATIENCE_S: Final = 30.0
"""The program has so long to answer; then it is killed with its children."""
REAP_S: Final = 1.0
"""A program that was killed has ended within this time."""


@frozen
class ExecCredentials:
    """What the program answered.

    Args:
        token: The bearer token; empty if there are certificates only.
        certificate: The client's certificate, PEM; empty without one.
        key: The key of the certificate, PEM.
        expires_at: Seconds since the epoch; None if the answer does not expire.
    """

    token: str = field(repr=False)
    certificate: str
    key: str = field(repr=False)
    expires_at: float | None


async def exec_credentials(
    entry: dict[str, Any], folder: Path, cluster: dict[str, Any], patience_s: float = PATIENCE_S
) -> ExecCredentials:
    """Run the program of a kubeconfig and return its answer.

    Args:
        entry: The map ``exec`` of the user.
        folder: The folder of the kubeconfig, in which relative paths of the program begin.
        cluster: The entry of the cluster, for programs that want it (``provideClusterInfo``).
        patience_s: Most seconds until the answer.

    Raises:
        ConfigError: the entry is wrong.
        ClusterUnreachable: the program is missing, failed, hung, or answered something else.
    """
    words, environment = _call(entry, folder, cluster)
    shown = Path(words[0]).name
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        hint = (
            one_line(str(entry.get("installHint") or "")) or "install it, or correct the user's entry in the kubeconfig"
        )
        raise ClusterUnreachable(f"the program {words[0]!r} that gives the credentials does not exist: {hint}")
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *words[1:],
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ClusterUnreachable(f"the program {shown!r} that gives the credentials cannot run: {error}") from None
    code = None
    try:
        async with asyncio.timeout(patience_s):
            output, errors = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
            code = await process.wait()
    except TimeoutError:
        raise ClusterUnreachable(
            f"the program {shown!r} that gives the credentials did not answer within {patience_s:g} s; "
            "it cannot ask for anything here: log in with it at a terminal"
        ) from None
    finally:
        if code is None:
            await _end(process)
    if code != 0:
        said = one_line(errors.decode(errors="replace"), 500) or "it printed nothing"
        raise ClusterUnreachable(
            f"the program {shown!r} that gives the credentials failed with exit code {code}: {said}"
        )
    return _answer(output, str(entry.get("apiVersion") or ""), shown)


def _call(entry: dict[str, Any], folder: Path, cluster: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the words of the program's call and its environment."""
    command = str(entry.get("command") or "")
    if not command:
        raise ConfigError("the kubeconfig names no program in exec.command")
    if "/" in command:
        command = str(folder.absolute() / Path(command).expanduser())
    environment = dict(os.environ)
    variables, arguments = entry.get("env") or [], entry.get("args") or []
    if not isinstance(arguments, list) or not isinstance(variables, list):
        raise ConfigError("exec.args and exec.env of the kubeconfig must be lists")
    for pair in variables:
        if not isinstance(pair, dict) or not pair.get("name"):
            raise ConfigError("each entry of exec.env of the kubeconfig must have a name and a value")
        environment[str(pair["name"])] = str(pair.get("value") or "")
    info: dict[str, Any] = {"interactive": False}
    if entry.get("provideClusterInfo"):
        info["cluster"] = {key: value for key, value in cluster.items() if key != "extensions"}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(
        {"apiVersion": entry.get("apiVersion"), "kind": "ExecCredential", "spec": info}
    )
    return [command, *map(str, arguments)], environment


async def _bounded(stream: asyncio.StreamReader | None) -> bytes:
    """Read to the end; what is beyond the limit is dropped, so that the program does not block."""
    data = b""
    while stream is not None and (piece := await stream.read(65536)):
        data = (data + piece)[: ANSWER_LIMIT + 1] if len(data) <= ANSWER_LIMIT else data
    return data


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the program's group, which may outlive the program, and reap the program.

    A process that has left the group may keep the pipes open: nothing waits for their end.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.communicate(), REAP_S)
    cast(Any, process)._transport.close()  # asyncio has no public way to close the pipes


def _answer(output: bytes, version: str, shown: str) -> ExecCredentials:
    try:
        document = json.loads(output)
        status = document["status"]
        token, certificate, key = (
            str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        expires = status.get("expirationTimestamp")
        expires_at = datetime.fromisoformat(str(expires)).astimezone(UTC).timestamp() if expires else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ClusterUnreachable(
            f"the answer of the program {shown!r} is not an ExecCredential with a status"
        ) from None
    if document.get("apiVersion") != version:
        raise ClusterUnreachable(
            f"the program {shown!r} answers in {document.get('apiVersion')!r} but the kubeconfig asks for {version!r}; "
            "correct exec.apiVersion"
        )
    if not token and not (certificate and key):
        raise ClusterUnreachable(
            f"the answer of the program {shown!r} has neither a token nor a certificate with its key"
        )
    return ExecCredentials(token.strip(), certificate, key, expires_at)
