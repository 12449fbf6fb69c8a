"""A server behind https: commands, scripts and jobs trust the configured authority, and no other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from programs import running_server

from torc_framework.client import make_api, map_function_to_jobs
from torc_framework.models.records import UserDataRecord, WorkflowRecord

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    return tmp_path / "ca.pem"


@pytest.fixture
def secure(tmp_path: Path, ca_file: Path) -> Iterator[str]:
    """URL of a real server with a certificate of an authority of its own."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca_file)
    issued = authority.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    flags = ["--https", "--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.pem")]
    with running_server(tmp_path, *flags) as url:
        yield url.replace("http://127.0.0.1", "https://localhost")


def test_jobs_reach_the_server_as_their_runner_does(secure: str, ca_file: Path, torc: Any, work: Path) -> None:
    """The runner has the authority from a configuration file, its jobs from the environment."""
    (work / "twice.py").write_text("def run(job_name, x):\n    return 2 * x\n")
    (work / "torc.toml").write_text(f'[client]\napi_url = "{secure}"\ntls_ca = "{ca_file}"\n')
    with make_api(secure, tls_ca=ca_file) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        map_function_to_jobs(api, wid, "twice", "run", [21], module_directory=work)
        done = torc("run", wid, "-f", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["counts"] == {"completed": 1}
        (result,) = api.find(UserDataRecord, workflow_id=wid, name="output_1")
        assert result.data == 42


def test_a_command_does_not_talk_to_a_stranger(secure: str, torc: Any) -> None:
    """One line has the cause and the remedy."""
    done = torc("ping", "--url", secure)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert "its certificate is not trusted" in done.stderr
    assert "TORC_TLS_CA" in done.stderr
