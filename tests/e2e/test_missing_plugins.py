"""What a user reads who needs a plugin that is not installed, is disabled, does not exist, or is misspelt."""

import json
import subprocess
from pathlib import Path

import pytest
from programs import Torc
from venvs import make_venv

from torc_framework.client import TorcClient
from torc_framework.distributions import DISTRIBUTIONS
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import ResultRecord, WorkflowRecord

ROOT = Path(__file__).parents[2]
MAIN = "import sys; from torc_framework.cli.programs.torc import main; sys.exit(main())"

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the framework and no plugin of another distribution."""
    return make_venv(tmp_path_factory.mktemp("bare") / "venv", without=[each.name for each in DISTRIBUTIONS])


@pytest.fixture
def bare(bare_python: Path, work: Path, torc_env: dict[str, str]) -> Torc:
    """Run the ``torc`` of that environment in the user's folder."""
    return torc_of(bare_python, work, torc_env)


def torc_of(python: Path, work: Path, torc_env: dict[str, str]) -> Torc:
    """Return how to run the ``torc`` of an environment."""

    def call(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python, "-c", MAIN, *arguments],
            cwd=work,
            env={**torc_env, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call


def spec(work: Path, **fields: object) -> str:
    """Write a spec with one job; return its name."""
    (work / "w.yaml").write_text(json.dumps({"name": "w", "jobs": [{"name": "a", "command": "true"}], **fields}))
    return "w.yaml"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("run", "w.yaml", "--executor", "kubernetes"), {}),
        (("run", "w.yaml", "--executor", "Kube"), {}),
        (("run", "w.yaml"), {"executor_options": {"kubernetes": {"image": "x"}}}),
        (("run", "w.yaml"), {"jobs": [{"name": "a", "command": "true", "executor": "kubernetes"}]}),
        (("kubernetes", "check"), {}),
        (("kube", "check"), {}),
    ],
)
def test_kubernetes_is_called_k8s(torc: Torc, work: Path, words: tuple[str, ...], fields: dict[str, object]) -> None:
    """Another name of it is refused in one line with the right one."""
    spec(work, **fields)
    done = torc(*words)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "did you mean 'k8s'?" in done.stderr


def test_every_distribution_of_the_repository_is_in_the_table() -> None:
    folders = {f"plugins/{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml")}
    assert {each.folder for each in DISTRIBUTIONS} == folders
    for each in DISTRIBUTIONS:
        assert f'name = "{each.name}"' in (ROOT / each.folder / "pyproject.toml").read_text()


CALLS = {
    "an executor": (["run", "w.yaml", "--executor", "slurm"], "slurm"),
    "the executor of this machine": (["run", "w.yaml"], "local"),
    "an executor's flag": (["run", "w.yaml", "--executor", "slurm", "--slurm-flag", "x"], "slurm"),
    "a group of commands": (["slurm", "list"], "slurm"),
    "a command": (["submit-slurm", "w.yaml", "--account", "x"], "slurm"),
    "an executor over SSH": (["run", "w.yaml", "--executor", "ssh", "--hosts", "a,b"], "ssh"),
    "commands for remote workers": (["remote", "run", "1"], "ssh"),
    "an executor on Kubernetes": (["run", "w.yaml", "--executor=k8s"], "k8s"),
    "commands for Kubernetes": (["k8s", "check"], "k8s"),
    "a command within a group": (["workflows", "create-slurm", "w.yaml"], "slurm"),
    "the help of a command": (["submit-slurm", "--help"], "slurm"),
    "the option of a policy": (["recover", "1", "--max-memory", "3g"], "recovery_oom"),
    "verdicts": (["recover", "1", "--ai-recovery"], "recovery_ai"),
    "verdicts on pending jobs": (["pending", "classify", "1"], "recovery_ai"),
    "a plugin": (["plugins", "show", "sysexits"], "sysexits"),
}


@pytest.mark.parametrize("case", CALLS)
def test_what_is_not_installed_is_named(bare: Torc, work: Path, case: str) -> None:
    """The message names the distribution and the command that installs it from a clone; nothing is created."""
    arguments, folder = CALLS[case]
    spec(work)
    done = bare(*arguments)
    assert done.returncode == 2, done.stderr
    name = f"torc-{folder.replace('_', '-')}"
    assert f"it belongs to {name}, which is not installed" in done.stderr
    assert f"pip install ./plugins/{folder} in a clone of torc_framework (pip install '{name}' once" in done.stderr
    assert "Traceback" not in done.stderr


def test_osmo_keys_of_a_spec(bare: Torc, work: Path) -> None:
    rule = {"exit_actions": {"RESCHEDULE": "137"}}
    spec(work, failure_handlers=[{"name": "h", "rules": [rule]}])
    done = bare("workflows", "create", "w.yaml")
    assert done.returncode == 2
    assert "failure_handlers[0].rules[0].exit_actions: unknown key 'exit_actions'" in done.stderr
    assert "pip install ./plugins/osmo" in done.stderr


def test_a_failure_without_its_policy(bare: Torc, torc: Torc, work: Path, own_server: str) -> None:
    """Recovery of a job that ran out of time names the policy that would give it more."""
    requirements = [{"name": "short", "num_cpus": 1, "memory": "100m", "runtime": "PT1S"}]
    job = {"name": "a", "command": "sleep 60", "resource_requirements": "short"}
    assert torc("run", spec(work, jobs=[job], resource_requirements=requirements)).returncode == 1
    done = bare("recover", "1", "--dry-run")
    assert "pip install ./plugins/recovery_oom" in done.stdout + done.stderr


def test_a_job_of_a_missing_executor_says_so(
    tmp_path: Path, work: Path, torc_env: dict[str, str], own_server: str
) -> None:
    """A spec is refused; a job that another client created through the HTTP API ends with the reason."""
    torc = torc_of(make_venv(tmp_path / "venv", without=["torc-k8s"]), work, torc_env)
    done = torc("run", spec(work, jobs=[{"name": "a", "command": "true", "executor": "k8s"}]))
    assert done.returncode == 2
    assert "jobs[0].executor: unknown executor 'k8s' in job 'a'; it belongs to torc-k8s" in done.stderr
    with TorcClient(own_server) as client:
        plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob("a", "true", executor="k8s")])
        workflow_id = client.create_from_plan(plan, initialize=True).id
        assert torc("run", str(workflow_id)).returncode == 1
        (result,) = client.find(ResultRecord, workflow_id=workflow_id)
    assert "unknown executor 'k8s'; it belongs to torc-k8s, which is not installed" in str(result.reason)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--disable-plugin", "slurm", "run", "w.yaml", "--executor", "slurm"],
            "the plugin 'slurm', which is disabled",
        ),
        (["run", "w.yaml", "--executor", "slurm", "--x", "1", "--disable-plugin=slurm"], "which is disabled"),
        (["slurm", "list", "--disable-plugin", "slurm"], "the plugin 'slurm', which is disabled"),
        (["workflows", "create-slurm", "w.yaml", "--disable-plugin", "slurm"], "which is disabled"),
        (["recover", "1", "--max-memory", "1g", "--disable-plugin", "oom"], "the plugin 'oom', which is disabled"),
    ],
)
def test_what_is_disabled_is_not_to_be_installed(torc: Torc, work: Path, arguments: list[str], told: str) -> None:
    spec(work)
    done = torc(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "pip install" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "w.yaml", "--executor", "slrum"], "unknown executor 'slrum'; did you mean 'slurm'?"),
        (["slrm"], "no command 'slrm'; did you mean 'slurm'?"),
        (["workflows", "create-slurn", "w.yaml"], "did you mean 'create-slurm'?"),
        (["plugins", "show", "sysexit"], "did you mean 'sysexits'?"),
        (["hpc", "show", "kestrl"], "did you mean 'kestrel'?"),
    ],
)
def test_the_nearest_name_is_suggested(torc: Torc, work: Path, arguments: list[str], told: str) -> None:
    spec(work)
    done = torc(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
