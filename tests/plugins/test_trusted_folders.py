"""Tests of project plugins: they are imported only if no other user could have written them and they are trusted."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, Torc

from torc_framework.errors import ConfigError
from torc_framework.plugins.discovery import PluginKind
from torc_framework.plugins.manager import PluginManager
from torc_framework.plugins.project_folders import PROJECT_FOLDER, imported_digests, read_project_folder
from torc_framework.plugins.trusted_folders import trust_file, trust_folder, trusted_folders, untrust_folder
from torc_framework.system.ownership import other_writer
from torc_framework.system.private_files import make_private_folder

STRANGER = 12345
MARKED = "from pathlib import Path\nPath(MARK).touch()\n"
SPEC = "name: w\njobs: [{name: a, command: 'true'}]\n"
OWN_RULE = """\
name: w
jobs: [{name: a, command: 'true', failure_handler: h}]
failure_handlers:
  - name: h
    rules: [{moon: full, max_retries: 1}]
"""
OWNER_OF_RULE = (
    "from torc_framework.api import hookimpl\n"
    "@hookimpl\ndef torc_failure_rule_keys():\n    return {'moon': {'type': 'string'}}\n"
)

Write = Callable[..., Path]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that is there once a plugin was imported."""
    return tmp_path / "imported"


@pytest.fixture
def write(work: Path, mark: Path) -> Write:
    """Write a plugin file that leaves a mark when it is imported."""

    def write(name: str = "mine", source: str = "") -> Path:
        (work / PROJECT_FOLDER).mkdir(exist_ok=True)
        path = work / PROJECT_FOLDER / f"{name}.py"
        path.write_text(MARKED.replace("MARK", repr(str(mark))) + source)
        return path

    return write


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TORC_TRUST", raising=False)


def trust_project(project: Path) -> str:
    folder = read_project_folder(project)
    assert folder is not None
    assert folder.sources
    trust_folder(folder.project, folder.digest, folder.names)
    return folder.digest


def refusal(project: Path) -> str | None:
    folder = read_project_folder(project)
    assert folder is not None
    return folder.refusal


# --- who could have written it --------------------------------------------------------------------


def stranger_owns(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("place", ["work/torc_plugins/mine.py", "work/torc_plugins", "work", "."])
@pytest.mark.parametrize("how", ["owner", "everybody", "group", "acl"])
def test_what_others_could_have_written_is_never_imported(
    tmp_path: Path, write: Write, mark: Path, place: str, how: str
) -> None:
    """Not even once it is trusted; the file, its folder and every folder above count."""
    work = write().parents[1]
    trust_project(work)
    target = tmp_path / place
    if how == "owner":
        stranger_owns(target)
        said = f"{target} belongs to user {STRANGER}"
    elif how == "everybody":
        target.chmod(0o777)
        said = f"{target} may be written by everybody"
    elif how == "group":
        os.chown(target, 0, 54321)
        target.chmod(0o770)
        said = f"{target} may be written by group 54321"
    else:
        if shutil.which("setfacl") is None:
            pytest.skip("no setfacl")
        if subprocess.run(["setfacl", "-m", f"u:{STRANGER}:rwx", str(target)], check=False).returncode:
            pytest.skip("a file system without access control lists")
        said = f"{target} may be written by group"
    assert (refusal(work) or "").startswith(said)
    info = PluginManager.load(work).info("mine")
    assert (info.refused, mark.exists()) == (True, False)
    assert said in (info.error or "")


def test_a_shared_folder_with_the_sticky_bit_is_no_danger(tmp_path: Path) -> None:
    """Other users cannot rename the user's files in /tmp; they can where the sticky bit is missing."""
    shared, own = tmp_path / "shared", tmp_path / "shared" / "own"
    own.mkdir(parents=True)
    shared.chmod(0o1777)
    assert other_writer(own) is None
    assert other_writer(shared) == f"{shared} may be written by everybody"
    shared.chmod(0o777)
    assert other_writer(own) == f"{shared} may be written by everybody"


def test_a_link_is_followed_to_where_the_file_is(tmp_path: Path) -> None:
    """A link of ours to a file that others may write is theirs."""
    shared, link = tmp_path / "shared", tmp_path / "link"
    shared.mkdir()
    (shared / "x.py").touch()
    link.symlink_to(shared / "x.py")
    assert other_writer(link) is None
    shared.chmod(0o777)
    assert other_writer(link) == f"{shared} may be written by everybody"


def test_the_names_of_files_forge_nothing(work: Path, write: Write) -> None:
    """A person decides by what is shown: a name stays in its line and moves no cursor."""
    write("a\x1b[2J\nError: forged")
    folder = read_project_folder(work)
    assert folder is not None
    assert "(a\\u001b[2J\\nError: forged.py) is not imported" in folder.explanation
    assert folder.explanation.isprintable()


@pytest.mark.parametrize("odd", ["pipe", "folder", "gone", "zero", "huge"])
def test_an_odd_file_is_said_and_not_waited_for(work: Path, write: Write, mark: Path, odd: str) -> None:
    """A pipe would be waited for, a device read for ever; nothing of the folder is imported then."""
    write()
    path = work / PROJECT_FOLDER / "odd.py"
    if odd == "pipe":
        os.mkfifo(path)
    elif odd == "folder":
        path.mkdir()
    elif odd == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.symlink_to("/dev/zero" if odd == "zero" else "/nosuch")
    said = {"gone": "No such file", "zero": "/dev/zero", "huge": "more than 16,777,216 bytes"}
    assert said.get(odd, "odd.py") in (refusal(work) or "")
    assert PluginManager.load(work).info("mine").refused
    assert not mark.exists()


# --- trust ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["edit", "add", "helper", "remove", "rename"])
def test_trust_ends_with_a_change(work: Path, write: Write, mark: Path, change: str) -> None:
    """Trust is in what the files said: any other content asks again."""
    path = write()
    write("_helper")
    trust_project(work)
    assert refusal(work) is None
    if change == "edit":
        path.write_text(path.read_text() + "#")
    elif change == "add":
        write("other")
    elif change == "helper":
        write("_helper", "#")
    elif change == "remove":
        (path.parent / "_helper.py").unlink()
    else:
        path.rename(path.with_name("other.py"))
    assert refusal(work) == "its files changed since you trusted it"


def test_trust_is_of_one_folder_and_can_be_taken_back(work: Path, write: Write, tmp_path: Path) -> None:
    """The same files elsewhere are not trusted; a moved folder neither."""
    write()
    trust_project(work)
    shutil.copytree(work, tmp_path / "copy")
    assert refusal(tmp_path / "copy") == "you have not trusted it yet"
    assert [each.folder for each in trusted_folders()] == [str(work)]
    assert untrust_folder(work)
    assert not untrust_folder(work)
    assert refusal(work) == "you have not trusted it yet"


def test_the_list_of_trust_is_the_users_alone(work: Path, write: Write, tmp_path: Path) -> None:
    """It has mode 0600 in a folder of 0700 with any umask; a file that others may write is refused."""
    write()
    before = os.umask(0)
    try:
        trust_project(work)
    finally:
        os.umask(before)
    path = trust_file()
    assert (path.stat().st_mode & 0o7777, path.parent.stat().st_mode & 0o7777) == (0o600, 0o700)
    path.chmod(0o666)
    with pytest.raises(ConfigError, match=r"lists the folders that you trust, and .* may be written by everybody"):
        read_project_folder(work)
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="is damaged"):
        read_project_folder(work)


def test_many_trust_at_once_and_all_are_remembered(tmp_path: Path) -> None:
    """Processes write the list one after the other."""
    code = (
        "import sys; from pathlib import Path; from torc_framework.plugins.trusted_folders import trust_folder\n"
        "for n in range(20): trust_folder(Path(f'/x/{sys.argv[1]}/{n}'), 'd', ['a.py'])\n"
    )
    several = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(4)]
    assert [each.wait() for each in several] == [0] * 4
    assert len(trusted_folders()) == 80


def test_the_environment_replaces_the_list(work: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner on a node trusts what its submitter did, and nothing else; so does a job of a CI."""
    write()
    digest = trust_project(work)
    monkeypatch.setenv("TORC_TRUST", "")
    assert refusal(work) == f"TORC_TRUST does not name its digest {digest}"
    monkeypatch.setenv("TORC_TRUST", f"abc, {digest}")
    untrust_folder(work)
    assert refusal(work) is None
    write("other")
    assert "TORC_TRUST does not name" in (refusal(work) or "")


# --- importing ------------------------------------------------------------------------------------


def test_the_bytes_that_were_looked_at_are_the_bytes_that_run(work: Path, write: Write) -> None:
    """A file that changes between check and import does not run, and neither does one that it imports."""
    write("mine", "from . import _helper\nfrom ._helper import VALUE\nimport torc_plugins._helper as again\n")
    write("_helper", "VALUE = 'trusted'\n")
    trust_project(work)
    folder = read_project_folder(work)
    assert folder is not None
    write("_helper", "VALUE = 'changed'\n")
    write("mine", "VALUE = 'changed'\n")
    from torc_framework.plugins.project_folders import import_project_plugin

    module: Any = import_project_plugin(folder, "mine")
    assert (module.VALUE, module._helper is module.again, module.__file__) == (
        "trusted",
        True,
        str(folder.path / "mine.py"),
    )
    assert folder.digest in imported_digests().split(",")  # of every folder that this process imported


def test_no_compiled_file_is_read_or_written(work: Path, write: Write, mark: Path) -> None:
    """One that a stranger put there would run instead of the source that was looked at."""
    import py_compile

    path = write()
    cached = path.parent / "__pycache__" / f"mine.{sys.implementation.cache_tag}.pyc"
    evil = path.with_name("evil.txt")
    evil.write_text(f"raise SystemExit('from {cached}')\n")
    py_compile.compile(
        str(evil), str(cached), dfile=str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    trust_project(work)
    assert PluginManager.load(work).info("mine").error is None
    assert mark.exists()
    shutil.rmtree(cached.parent)
    PluginManager.load(work)
    assert not cached.parent.exists()


def test_two_folders_do_not_see_each_others_helpers(
    work: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the spec and that of the present folder are two packages."""
    write("here", "from ._helper import VALUE\nassert VALUE == 1, VALUE\n")
    write("_helper", "VALUE = 1\n")
    other = tmp_path / "other"
    shutil.copytree(work, other)
    (other / PROJECT_FOLDER / "here.py").rename(other / PROJECT_FOLDER / "there.py")
    (other / PROJECT_FOLDER / "there.py").write_text("from ._helper import VALUE\nassert VALUE == 2, VALUE\n")
    (other / PROJECT_FOLDER / "_helper.py").write_text("VALUE = 2\n")
    trust_project(work)
    trust_project(other)
    monkeypatch.chdir(work)
    infos = [info for info in PluginManager.load(other).infos() if info.kind is PluginKind.PROJECT]
    assert [(info.name, info.error) for info in infos] == [("here", None), ("there", None)]


def test_a_strangers_file_cannot_switch_off_a_plugin_by_its_name(work: Path, write: Write) -> None:
    """Two plugins of one name are both set aside, but a file that is not imported is no plugin."""
    write("local")
    manager = PluginManager.load(work)
    assert "local" in manager.executors()
    assert [info.refused for info in manager.infos() if info.name == "local"] == [False, True]


# --- the commands ---------------------------------------------------------------------------------

ACTING: list[list[str]] = [
    ["run", "w.yaml"],
    ["workflows", "create", "w.yaml"],
    ["run", "1"],
    ["workflows", "run", "1"],
    ["watch", "1"],
    ["recover", "1"],
    ["workflows", "sync-status", "1"],
    ["pending", "classify", "1"],
    ["run", "--executor", "other", "--x", "1", "w.yaml"],
]
LOOKING: list[list[str]] = [
    ["plugins", "list"],
    ["plugins", "show", "local"],
    ["workflows", "create", "--dry-run", "w.yaml"],
    ["workflows", "execution-plan", "w.yaml"],
    ["explain", "1"],
    ["why-failed", "1"],
    ["hpc", "list"],
    ["run", "--executor", "local", "--help"],
    ["recover", "--help"],
    ["pending", "classify", "1", "--dry-run"],
    ["workflows", "sync-status", "1", "--dry-run"],
]


@pytest.fixture
def stored(torc: Torc, own_server: str, work: Path, write: Write) -> None:
    """A workflow and a spec, in a folder with a plugin that is not trusted."""
    (work / "w.yaml").write_text(SPEC)
    assert torc("workflows", "create", "w.yaml").returncode == 0
    write()


@pytest.mark.e2e
@pytest.mark.usefixtures("stored")
def test_commands_that_would_run_the_code_refuse(torc: Torc, work: Path, mark: Path) -> None:
    """Without a terminal the exit code is 2, and one message names the command to type."""
    for command in ACTING:
        done = torc(*command)
        said = (
            "torc_plugins (mine.py) is not imported: you have not trusted it yet; "
            f"look at the files, then type: torc plugins trust {work}"
        )
        assert (done.returncode, said in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done
        assert not mark.exists()
        assert torc("-f", "json", "workflows", "list").stdout.count('"id"') == 1
    assert torc("run", "1", "--disable-plugin", "mine").returncode == 0
    assert not mark.exists()


@pytest.mark.e2e
@pytest.mark.usefixtures("stored")
def test_commands_that_look_go_on_without(torc: Torc, mark: Path) -> None:
    """They import nothing, do what they can, and say in one line what is missing."""
    for command in LOOKING:
        done = torc(*command)
        warnings = [line for line in done.stderr.splitlines() if "you have not trusted it yet" in line]
        assert len(warnings) == 1, (command, done)
        assert warnings[0].startswith("Warning: what its plugins define is unknown here: ")
        assert done.returncode == 0, (command, done)
        assert not mark.exists()


@pytest.mark.e2e
def test_a_shell_that_completes_imports_nothing(torc: Torc, write: Write, mark: Path) -> None:
    """Completion in the folder of another user runs no plugin and prints nothing."""
    write()
    env = {"_TORC_COMPLETE": "complete_bash", "COMP_WORDS": "torc run --executor l", "COMP_CWORD": "3"}
    done = torc(env=env)
    assert ("local" in done.stdout, done.stderr, mark.exists()) == (True, "", False)


@pytest.mark.e2e
def test_the_list_names_what_was_not_imported_and_why(torc: Torc, work: Path, write: Write, mark: Path) -> None:
    """Then what is trusted, until that ends."""
    write()
    listed = json.loads(torc("plugins", "list", "-f", "json").stdout)
    (mine,) = [each for each in listed["plugins"] if each["name"] == "mine"]
    assert (mine["refused"], mine["error"]) == (True, "not imported: you have not trusted it yet")
    assert listed["trusted_folders"] == []
    trusted = json.loads(torc("plugins", "trust", "-f", "json").stdout)
    assert trusted["files"] == ["mine.py"]
    listed = json.loads(torc("plugins", "list", "-f", "json").stdout)
    assert [each["folder"] for each in listed["trusted_folders"]] == [str(work)]
    assert mark.exists()
    text = torc("plugins", "list").stdout
    assert f"{work}" in text
    assert torc("plugins", "untrust", work / PROJECT_FOLDER).returncode == 0
    again = torc("plugins", "untrust")
    assert (again.returncode, "you do not trust" in again.stderr) == (2, True)
    assert "not trusted" in torc("plugins", "list").stdout
    empty = torc("plugins", "trust", "/")
    assert (empty.returncode, "there are no plugins to trust" in empty.stderr) == (2, True)


@pytest.mark.e2e
def test_keys_of_a_plugin_that_is_not_trusted(torc: Torc, work: Path, write: Write) -> None:
    """A dry run reports that untrusted plugins may own them; with trust they are known."""
    write("mine", OWNER_OF_RULE)
    (work / "w.yaml").write_text(OWN_RULE)
    looked = torc("workflows", "create", "--dry-run", "w.yaml")
    assert looked.returncode == 1
    assert "what its plugins define is unknown here" in looked.stderr
    assert torc("plugins", "trust").returncode == 0
    assert torc("workflows", "create", "--dry-run", "w.yaml").returncode == 0


def at_terminal(command: list[str], env: dict[str, str], folder: Path, answer: bytes) -> tuple[int, str]:
    """Run a command at a terminal of its own, and answer its question."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(command[0], command, env)
    said, deadline, is_answered = b"", time.monotonic() + 60, False
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        try:
            chunk = os.read(terminal, 4096) if ready else b""
        except OSError:
            break
        if ready and not chunk:
            break
        said += chunk
        if b"[y/N]" in said and not is_answered:
            os.write(terminal, answer)
            is_answered = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


@pytest.mark.e2e
@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2)])
def test_at_a_terminal_the_person_is_asked(
    torc_env: dict[str, str], write: Write, mark: Path, answer: bytes, code: int
) -> None:
    """The files are shown; yes is remembered, and anything else is no."""
    work = write().parents[1]
    (work / "w.yaml").write_text(SPEC)
    status, said = at_terminal([str(BIN / "torc"), "run", "w.yaml"], torc_env, work, answer)
    assert "mine.py  " in said
    assert (status, mark.exists()) == (code, code == 0), said
    if code == 0:
        status, said = at_terminal([str(BIN / "torc"), "run", "w.yaml"], torc_env, work, answer)
        assert (status, "[y/N]" in said) == (0, False)


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_users_folder_in_tmp(write: Write, work: Path, tmp_path: Path) -> None:
    """As it happens: a stranger's torc_plugins in a shared folder of root's, and a real user who works there."""
    base = Path("/tmp") / f"torc-trust-{os.getpid()}"
    make_private_folder(base)
    try:
        base.chmod(0o1777)
        stolen, home = base / "stolen", base / "home"
        home.mkdir()
        stranger_owns(home)
        (base / PROJECT_FOLDER).mkdir()
        (base / PROJECT_FOLDER / "mine.py").write_text(MARKED.replace("MARK", repr(str(stolen))))
        os.chown(base / PROJECT_FOLDER, STRANGER + 1, STRANGER + 1)
        os.chown(base / PROJECT_FOLDER / "mine.py", STRANGER + 1, STRANGER + 1)
        call = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", str(BIN / "torc")]
        (base / "w.yaml").write_text(SPEC)
        env = {"HOME": str(home), "USER": "u", "PATH": os.environ["PATH"], "TORC_API_URL": "http://127.0.0.1:9"}
        probe = subprocess.run([*call, "--version"], env=env, cwd=base, capture_output=True, check=False)
        if probe.returncode:
            pytest.skip("another user cannot read this installation")
        for arguments in (["plugins", "trust"], ["run", "w.yaml"], ["plugins", "list"]):
            done = subprocess.run([*call, *arguments], env=env, cwd=base, capture_output=True, text=True, check=False)
            assert f"belongs to user {STRANGER + 1}" in done.stderr
            assert done.returncode == (0 if "list" in arguments else 2)
        assert not stolen.exists()
    finally:
        shutil.rmtree(base)
