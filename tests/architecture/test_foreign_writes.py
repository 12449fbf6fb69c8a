"""What a host, a cluster or a file names is written by `torc_framework.system.contained_folder` only."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = (
    "plugins/ssh/torc_ssh",
    "plugins/k8s/torc_k8s",
    "plugins/slurm/torc_slurm/commands/sacct.py",
    "torc_framework/logs",
    "torc_framework/plots",
    "torc_framework/store/workflows",
)
"""Folders and modules that write at paths which follow from foreign input, or may come to do so."""
EXCEPT: dict[str, str] = {
    "plugins/ssh/torc_ssh/helper": "runs on the host, and writes there what this machine names",
    "plugins/ssh/torc_ssh/connection/known_hosts.py": "the file that the user's configuration names",
    "plugins/ssh/torc_ssh/connection/ssh_connection.py": "its own temporary folder",
    "plugins/ssh/torc_ssh/executor/attempt_records.py": "the runner's own file",
    "plugins/k8s/torc_k8s/cluster/login.py": "names of its own, in a new folder",
    "plugins/k8s/torc_k8s/commands/manifests.py": "names of its own, in the folder that the user names",
    "plugins/k8s/torc_k8s/container/log_reader.py": "only the null device",
    "torc_framework/logs/bundle.py": "the file that the user names",
}
"""What writes in another way, each with the reason."""
METHODS = {
    *("write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "renames", "unlink", "rmdir", "rmtree"),
    *("symlink", "symlink_to", "link", "hardlink_to", "mknod", "mkfifo", "chmod", "chown", "utime", "truncate"),
    *("mkstemp", "NamedTemporaryFile", "copy", "copy2", "copyfile", "copytree", "move"),
}
UNPACKING = {"extract", "extractall", "unpack_archive"}


def writes(node: ast.AST) -> bool:
    """Return whether a node is a call that changes the file system, or names a method that does."""
    if isinstance(node, ast.Attribute):
        return node.attr in METHODS
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if name == "open":
        flags = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        modes = [text for text in texts if len(text) <= 4 and set(text) & set("wax+") and set(text) <= set("rwaxbt+")]
        return bool(modes or flags & {"O_WRONLY", "O_RDWR", "O_CREAT"})
    return name == "replace" and len(node.args) == 1 and not node.keywords  # that of a text has two arguments


def nodes(path: Path) -> Iterator[ast.AST]:
    """Yield all that is in a module."""
    yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def modules_of(place: str) -> list[Path]:
    """Return a module, or all of a folder."""
    return [path] if (path := ROOT / place).is_file() else sorted(path.rglob("*.py"))


def excepted(path: Path) -> str | None:
    """Return the entry of `EXCEPT` for a module."""
    where = path.relative_to(ROOT).as_posix()
    return next((each for each in EXCEPT if where == each or where.startswith(f"{each}/")), None)


def test_foreign_input_is_written_by_the_contained_folder() -> None:
    """Methods of other objects have other names than those that write files, so that none needs an exception."""
    found, used = [], set()
    for path in (path for place in PLACES for path in modules_of(place)):
        for node in filter(writes, nodes(path)):
            if (entry := excepted(path)) is not None:
                used.add(entry)
            else:
                found.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}")
    assert found == [], "torc_framework.system.contained_folder writes at foreign paths"
    assert used == set(EXCEPT), "an exception that is not needed"


def test_no_archive_is_unpacked() -> None:
    """Bundles are read as streams; names in them choose no files."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("torc_framework", "plugins")
        for path in modules_of(folder)
        if "tests" not in path.parts
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in UNPACKING
    ]
    assert found == []
