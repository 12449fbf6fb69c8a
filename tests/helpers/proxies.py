"""Real proxies in front of a dashboard: nginx at a prefix, and Apache with addresses of nodes."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from waiting import eventually

NGINX: Final = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    {temporary}
    server {{ listen 127.0.0.1:{port}; {more} location /torc/ {{ proxy_pass {base}; }} }}
}}
"""
_TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
APACHE: Final = """
ServerRoot {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
Listen 127.0.0.1:{port}
ServerName ondemand.example.org
User #65534
Group #65534
{modules}
{more}
"""
MODULES: Final = Path("/usr/lib/apache2/modules")
_LOADED: Final = ("mpm_event", "authz_core", "headers", "rewrite", "proxy", "proxy_http")


def free_port() -> int:
    """Return a port that no program has now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _program(name: str, package: str) -> str:
    """Return the path of a program; where it is missing the test is skipped, except in CI."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert os.environ.get("CI") != "true", f"{name} is missing: install the package {package}"
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def running_nginx(folder: Path, base: str, more: str = "") -> Iterator[str]:
    """Run nginx with its own settings for buffers, sizes and host names; give the URL of the dashboard below a prefix.

    Args:
        folder: Folder of its files.
        base: URL of the dashboard.
        more: Further settings of its server.
    """
    program = _program("nginx", "nginx-light")
    port = free_port()
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, temporary=temporary, port=port, base=base, more=more))
    with _running([program, "-c", str(config), "-p", str(folder)], port):
        yield f"http://127.0.0.1:{port}/torc/"


@contextmanager
def running_apache(folder: Path, more: str) -> Iterator[str]:
    """Run Apache with some settings; give its URL."""
    program = _program("apache2", "apache2-bin")
    port = free_port()
    modules = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in _LOADED)
    config = folder / "apache.conf"
    config.write_text(APACHE.format(folder=folder, port=port, modules=modules, more=more))
    with _running([program, "-f", str(config), "-DFOREGROUND"], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(process, port), f"{command[0]} does not listen")
        yield
    finally:
        process.terminate()
        process.wait(30)


def _listens(process: "subprocess.Popen[bytes]", port: int) -> bool:
    assert process.poll() is None, "the proxy has ended"
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
