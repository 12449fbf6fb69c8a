"""From a cluster's address to a client that may talk to it: endpoint, TLS, credentials, and when to renew them.

`kubernetes.aio` makes the TLS context and the session, and renews the tokens of OpenID providers. What it does without
a limit of time or without a message is done here: files, programs that give credentials, proxies of the environment.
"""

import asyncio
import base64
import hashlib
import ipaddress
import json
import os
import socket
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakSet

from attrs import define, field, frozen

from torc_framework.api import ConfigError
from torc_k8s.cluster.address import ClusterAddress
from torc_k8s.cluster.errors import ClusterUnreachable, one_line
from torc_k8s.cluster.exec_credentials import exec_credentials
from torc_k8s.cluster.kubeconfig import SelectedContext, kubeconfig_files, select_context

ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its account. Source: Kubernetes documentation, "Accessing the Kubernetes API from a Pod"."""
TOKEN_FILE_S: Final = 60.0
"""A file with a token is read again after this time; the kubelet replaces it before the token expires."""
EARLY_S: Final = 60.0
"""Credentials are renewed this long before they expire."""
OPENID_PATIENCE_S: Final = 30.0
CLOSE_S: Final = 1.0
"""Connections have so long to close."""
IDLE_S: Final = 3.0
"""A connection without a request is kept for so long."""
FILE_LIMIT: Final = 1024 * 1024
"""Most bytes of a token or certificate."""
KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))
"""Options of sockets (seconds, and milliseconds for the last): a vanished peer is noticed in 30 s."""


@frozen
class Access:
    """An endpoint and the credentials for it, before any connection.

    Args:
        cluster: The entry ``cluster`` of a kubeconfig.
        user: The entry ``user``, in which tokens and certificates have taken the place of programs and files of tokens.
        account: The account or context, for sentences.
        namespace: The namespace.
        renew_after_s: The credentials are loaded again after so many seconds; None if only when they are refused.
    """

    cluster: dict[str, Any]
    user: dict[str, Any] = field(repr=False)
    account: str
    namespace: str
    renew_after_s: float | None

    @property
    def fingerprint(self) -> str:
        """A text of all that a connection is made with, except tokens: if it changes, a new connection is needed."""
        made_of = {**self.user, "token": "", "cluster": self.cluster}
        for name in _FILES:
            if path := {**self.cluster, **self.user}.get(name):
                made_of[f"{name}-bytes"] = hashlib.sha256(_read(Path(path), name)).hexdigest()
        return hashlib.sha256(json.dumps(made_of, sort_keys=True, default=str).encode()).hexdigest()


@define
class Login:
    """A session with a cluster and the headers of its requests.

    Args:
        access: What it was made of.
        fingerprint: The fingerprint of the access.
        client: The ``RESTClientObject`` of `kubernetes.aio`.
        headers: The headers that name the account.
        under_way: What ends each request that is under way.
        sockets: Those of its connections.
        is_retired: Another login has taken its place; its last request closes the session.
    """

    access: Access
    fingerprint: str
    client: Any
    headers: list[tuple[str, str]] = field(repr=False)
    under_way: dict[object, Callable[[], None]] = field(factory=dict)
    sockets: "WeakSet[socket.socket]" = field(factory=WeakSet)
    is_retired: bool = False

    async def close(self) -> None:
        """Close the session and its connections; a request that waits gets an error of the connection."""
        for end in [*self.under_way.values()]:
            end()
        connector = self.client.configuration.client_session_kwargs["connector"]
        await self.client.close()
        await connector.close()
        deadline = asyncio.get_running_loop().time() + CLOSE_S
        while any(each.fileno() >= 0 for each in self.sockets) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)  # aiohttp does not wait for TLS connections that a cancelled request has closed


_FILES: Final = ("certificate-authority", "client-certificate", "client-key")


def is_configured(address: ClusterAddress) -> bool:
    """Return whether a kubeconfig is named or exists, or this process runs in a pod with an account."""
    return bool(address.kubeconfig or kubeconfig_files(address)) or _is_in_pod()


def _is_in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (ACCOUNT_FOLDER / "token").exists()


async def find_access(address: ClusterAddress) -> Access:
    """Return the access that an address names; programs that give credentials are run.

    Raises:
        ConfigError: there is no kubeconfig and no account of a pod, or one that is wrong.
        ClusterUnreachable: a program that gives the credentials failed.
    """
    files = kubeconfig_files(address)
    if files:
        selected = select_context(files, address.context)
        return await _of_context(selected, address.namespace or selected.namespace or "default")
    if address.context:
        raise ConfigError(f"no kubeconfig has the context {address.context!r}: none of {_searched()} exists")
    if not _is_in_pod():
        raise ConfigError(
            f"no cluster is configured: {_searched()} does not exist, and this process does not run in a pod with an "
            "account; set KUBECONFIG or the option --kubeconfig"
        )
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = address.namespace or _text(ACCOUNT_FOLDER / "namespace", "namespace of the account")
    return Access(
        {
            "server": f"https://{f'[{host}]' if ':' in host else host}:{port}",
            "certificate-authority": str(ACCOUNT_FOLDER / "ca.crt"),
        },
        {"token": _text(ACCOUNT_FOLDER / "token", "token of the account")},
        "the account of this pod",
        namespace,
        TOKEN_FILE_S,
    )


def _searched() -> str:
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


async def _of_context(selected: SelectedContext, namespace: str) -> Access:
    user, renew_after_s = dict(selected.user), None
    provider = (user.get("auth-provider") or {}).get("name")
    if provider not in {None, "oidc"}:
        raise ConfigError(
            f"{selected.files}: the auth-provider {provider!r} of context {selected.name!r} is no longer part of "
            "Kubernetes; use the provider's exec program (kubelogin, gke-gcloud-auth-plugin)"
        )
    if user.get("tokenFile"):
        user["token"] = _text(Path(user.pop("tokenFile")), "token")
        renew_after_s = TOKEN_FILE_S
    elif user.get("exec") and not user.get("token"):
        given = await exec_credentials(user["exec"], selected.folder, selected.cluster)
        if given.token:
            user["token"] = given.token
        if given.certificate:
            for name, text in (("client-certificate", given.certificate), ("client-key", given.key)):
                user.pop(name, None)
                user[f"{name}-data"] = base64.b64encode(text.encode()).decode()
        if given.expires_at is not None:
            renew_after_s = max(given.expires_at - time.time() - EARLY_S, 5.0)
    elif provider == "oidc":
        renew_after_s = TOKEN_FILE_S
    user.pop("exec", None)
    return Access(dict(selected.cluster), user, f"context {selected.name!r}", namespace, renew_after_s)


async def log_in(access: Access, current: Login | None = None) -> Login:
    """Return a session for an access; no request is sent.

    Args:
        access: Endpoint and credentials.
        current: A login that is used on, with the new token, if nothing else has changed.

    Raises:
        ConfigError: a certificate, token, proxy or address is not valid.
        ClusterUnreachable: an OpenID provider did not renew the token.
    """
    from kubernetes.aio import client, config
    from kubernetes.aio.client.rest import RESTClientObject

    configuration, load = client.Configuration(), cast(Any, config.load_kube_config_from_dict)
    with tempfile.TemporaryDirectory(prefix="torc-k8s-") as folder:
        cluster, user = _with_files(access.cluster, folder), _with_files(access.user, folder)
        document = {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
        try:
            async with asyncio.timeout(OPENID_PATIENCE_S):
                await load(document, client_configuration=configuration)
            configuration.disable_strict_ssl_verification = True  # as kubectl: authorities of clusters lack extensions
            configuration.proxy = _proxy(configuration.host, configuration.proxy)
            headers = _headers(configuration.api_key.get("BearerToken"), access)
            if current is not None and current.fingerprint == access.fingerprint:
                current.access, current.headers = access, headers
                return current
            rest = RESTClientObject(configuration)
        except ConfigError:
            raise
        except Exception as error:  # the loader passes on all exceptions of its libraries
            if "auth-provider" in user:
                raise ClusterUnreachable(
                    f"{access.account}: the OpenID provider gives no token: {_said(error)}"
                ) from None
            raise ConfigError(
                f"{access.account}: certificate or entry of the kubeconfig is not valid: {_said(error)}"
            ) from None
    login = Login(access, access.fingerprint, rest, headers)
    configuration.client_session_kwargs = {"connector": _connector(rest.ssl_context, login.sockets), "trust_env": False}
    return login


def _said(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}", 300)


def _with_files(entry: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return an entry whose data stand in files of a folder that is removed; the loader keeps its files to the end.

    Raises:
        ConfigError: data are not base64, a file cannot be read, or a key has a pass phrase.
    """
    result = dict(entry)
    for name in _FILES:
        data = result.pop(f"{name}-data", None)
        if data:
            try:
                content = base64.b64decode(data, validate=False)
            except ValueError as error:
                raise ConfigError(f"{name}-data of the kubeconfig is not base64: {error}") from None
            path = Path(folder) / name
            path.touch(mode=0o600)
            path.write_bytes(content)
            result[name] = str(path)
        elif result.get(name):
            content = _read(Path(result[name]), name)
        else:
            result.pop(name, None)
            continue
        if name == "client-key" and b"ENCRYPTED" in content:
            raise ConfigError(
                "the client-key of the kubeconfig has a pass phrase, which cannot be asked for here; remove it"
            )
    return result


def _headers(authorization: str | None, access: Access) -> list[tuple[str, str]]:
    headers = [("Accept", "application/json"), ("User-Agent", "torc-k8s")]
    if authorization:
        headers.append(("Authorization", authorization))
    if access.user.get("as"):
        headers.append(("Impersonate-User", str(access.user["as"])))
        headers.extend(("Impersonate-Group", str(group)) for group in access.user.get("as-groups") or ())
    for name, value in headers:
        if not value.isascii() or not value.isprintable():
            raise ConfigError(
                f"{access.account}: the value of the header {name} has characters that no header may have"
            )
    return headers


def _connector(ssl_context: Any, sockets: "WeakSet[socket.socket]") -> Any:
    import aiohttp

    def new_socket(info: Any) -> socket.socket:
        made = socket.socket(family=info[0], type=info[1], proto=info[2])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        sockets.add(made)
        return made

    # watches and logs hold their connections, so that a limit would keep other requests waiting
    return aiohttp.TCPConnector(ssl=ssl_context, limit=0, keepalive_timeout=IDLE_S, socket_factory=new_socket)


def _proxy(server: str, configured: str | None) -> str | None:
    """Return the proxy of the kubeconfig, else that of the environment, by the rules of kubectl.

    Source: golang.org/x/net/http/httpproxy; other than there, aiohttp knows no networks in ``NO_PROXY``.
    """
    url = urllib.parse.urlsplit(server)
    proxy = configured
    if not proxy and not _is_without_proxy(url.hostname or ""):
        proxy = urllib.request.getproxies_environment().get(url.scheme)
    if proxy and urllib.parse.urlsplit(proxy).scheme not in {"http", "https"}:
        raise ConfigError(f"the proxy {_without_password(proxy)} is none of HTTP; SOCKS is not supported")
    return proxy


def _is_without_proxy(host: str) -> bool:
    if host == "localhost" or cast(Any, urllib.request).proxy_bypass_environment(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_loopback:
        return True
    for text in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(","):
        try:
            if address in ipaddress.ip_network(text.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _without_password(proxy: str) -> str:
    parts = urllib.parse.urlsplit(proxy)
    return f"{parts.scheme}://{parts.hostname}" if parts.hostname else "of the kubeconfig"


def _read(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"the {what} {path} cannot be read: {error.strerror}") from None
    if len(content) > FILE_LIMIT:
        raise ConfigError(f"the {what} {path} is larger than {FILE_LIMIT} bytes")
    return content


def _text(path: Path, what: str) -> str:
    text = _read(path, what).decode(errors="replace").strip()
    if not text:
        raise ConfigError(f"the {what} {path} is empty")
    return text
