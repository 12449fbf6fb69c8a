"""The program that is sent to a host: a command for any login shell, a loader, and the compressed sources."""

import functools
import json
import re
import zlib
from importlib import resources
from typing import Final

from torc_framework.api import UserError
from torc_framework.api.supervision import package_sources

_PYTHON: Final = re.compile(r"[\w./~+=:@%, -]+")
_COMMAND: Final = (
    "exec {python} -EsSuc 'import sys;i=getattr(sys.stdin,\"buffer\",sys.stdin);exec(i.read(int(i.readline())))'"
)
"""Without newline, ``!``, ``$`` and nested quotes of one kind: sh, bash, zsh, fish and tcsh take it as it is."""
_LOADER: Final = """\
sys.path[:] = [each for each in sys.path if each]  # without the home folder, whose files may have names of modules
import os
v = sys.version_info
if v < (3, 8):
    import json, struct
    found = sorted(set(os.path.join(d, "python3.%d" % n) for d in os.environ.get("PATH", os.defpath).split(":")
                       for n in range(8, 30) if os.access(os.path.join(d, "python3.%d" % n), os.X_OK)))
    text = "Python 3.8 or newer is needed, this is %d.%d.%d (%s)" % (v[0], v[1], v[2], sys.executable)
    if found:
        text += "; there is also " + ", ".join(found)
    body = json.dumps({"event": "unfit", "text": text}).encode("ascii")
    os.write(1, MARKER + struct.pack(">cI", b"M", len(body)) + body)
    sys.exit(0)
import json, zlib
from importlib.machinery import ModuleSpec
class SentSources(object):
    def __init__(self, sources):
        self.sources = sources
    def find_spec(self, name, path=None, target=None):
        if name not in self.sources:
            return None
        inside = name + "."
        return ModuleSpec(name, self, is_package=any(each.startswith(inside) for each in self.sources))
    def create_module(self, spec):
        return None
    def get_source(self, name):
        return self.sources[name]
    def exec_module(self, module):
        name = module.__name__
        exec(compile(self.sources[name], "<torc>/" + name.replace(".", "/"), "exec", 0, True), module.__dict__)
modules, files = json.loads(zlib.decompress(i.read(ARCHIVE)).decode())
for path in files:
    name = path[:-3].replace("/", ".")
    modules[name[:-9] if name.endswith(".__init__") else name] = files[path]
sys.meta_path.insert(0, SentSources(modules))
os.write(1, MARKER)
os.set_blocking(0, False)
first = i.peek()
from torc_ssh.helper.main import main
main(bytes(first), files)
"""
"""What the command executes; every Python from 2.7 on can parse it. ``i`` is the buffer of standard input."""


def helper_command(python: str) -> str:
    """Return the command that starts the helper in a login shell.

    Args:
        python: The interpreter: a name, a path, or words such as ``env LANG=C python3.11``.

    Raises:
        UserError: it contains characters that shells interpret.
    """
    if not _PYTHON.fullmatch(python):
        raise UserError(f"python = {python!r}: give the name or path of an interpreter, without quotes and the like")
    return _COMMAND.format(python=python)


def helper_program(marker: bytes) -> bytes:
    """Return what follows the command on standard input.

    Args:
        marker: What the program writes before anything else.
    """
    archive = _archive()
    head = f"MARKER = {marker!r}\nARCHIVE = {len(archive)}\n"
    body = (head + _LOADER).encode()
    return b"%d\n" % len(body) + body + archive


@functools.cache
def _archive() -> bytes:
    """Return the modules of the helper by their names, and the files of the room supervision by their paths."""
    sources = {"torc_ssh": ""}
    for entry in resources.files("torc_ssh.helper").iterdir():
        if entry.name.endswith(".py"):
            module = "torc_ssh.helper." + entry.name.removesuffix(".py")
            sources[module.removesuffix(".__init__")] = entry.read_text(encoding="utf-8")
    return zlib.compress(json.dumps([sources, package_sources()]).encode(), 9)
