"""People who log in to a real server: each with a name, a password and a way to send requests."""

import base64
import http.client
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen
from server_child import ServerChild

from torc_framework.server.auth import htpasswd


@frozen
class Reply:
    """What the server answered; the body of a stream is left alone."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        """The reason of an error."""
        return str(self.body["error"]["message"])


@frozen
class Person:
    """A person who sends requests; without a name, without credentials."""

    url: str
    name: str | None = None
    password: str = ""
    more: dict[str, str] = field(factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """What each request carries."""
        if self.name is None:
            return dict(self.more)
        secret = base64.b64encode(f"{self.name}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {secret}", **self.more}

    def call(self, method: str, path: str, body: Any = None) -> Reply:
        """Send a request; a path that begins with two slashes is outside the API."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            target = path[1:] if path.startswith("//") else parts.path + path
            connection.request(method, target, None if body is None else json.dumps(body), self.headers)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            is_json = headers.get("content-type", "").startswith("application/json")
            return Reply(response.status, json.loads(response.read()) if is_json else None, headers)
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must be granted; return the body."""
        reply = self.call(method, path, body)
        assert reply.status == 200, (method, path, reply)
        return reply.body


def password_of(name: str) -> str:
    """Return the password that `write_users` gives a person."""
    return f"password of {name}"


def write_users(path: Path, names: Iterable[str]) -> Path:
    """Write a password file with cheap hashes."""
    htpasswd.edit(path, {name: htpasswd.hash_password(password_of(name), 4) for name in names}, create=True)
    return path


@contextmanager
def guarded_server(folder: Path, names: Iterable[str], *flags: str) -> Iterator[ServerChild]:
    """Run a real server with access control, which these people may log in to."""
    users = write_users(folder / "users", names)
    with ServerChild(
        folder, "--auth-file", str(users), "--enforce-access-control", "--log-level", "error", *flags
    ) as child:
        yield child
