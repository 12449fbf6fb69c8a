"""The compiled methods of attrs classes, from a file of the user's cache.

attrs makes the methods of a class by compiling a text when the class is imported, 0.4 ms a class, which is a quarter of
what the start of a command computes. The compiled code follows from the text, the name of its file and the version of
Python alone, as a module's ``.pyc`` file does. So it is kept in a file by these. A program that calls
`use_kept_code` before it imports such classes finds it there; `keep_new_code` adds what it had to compile itself.
"""

import marshal
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from torc_framework.system.cached_facts import cache_folder, read_own, write_own

MAX_TEXTS: Final = 2_000
"""Most texts that are kept, four times those of all commands; beyond that, the file begins anew."""
_KIND: Final = "classes"
_SALT: Final = re.compile(r"hash\(\(\n +-?[0-9]+,")
"""The begin of a hash method with the number by which hashes of one class differ from those of others; attrs makes
another one in each process, and any does. A pattern that begins with fixed text is found ten times faster."""

_Texts = dict[tuple[str, str], bytes]
"""Marshalled code by the text and the name of its file."""
_kept: Final[_Texts] = {}
_new: Final[_Texts] = {}


def use_kept_code() -> None:
    """Let attrs take the code of its texts from the file, from now on in this process."""
    import attr._make

    # attrs has no public way to replace this; a version that does not call `compile` by this name compiles as before.
    if vars(attr._make).setdefault("compile", _compiled) is _compiled and not _kept:
        _kept.update(_read())


def keep_new_code() -> None:
    """Write what this process had to compile into the file, beside what other processes have written meanwhile."""
    file = _file()
    if not _new or file is None:
        return
    kept = {**_read(), **_new}
    write_own(file, marshal.dumps(kept if len(kept) <= MAX_TEXTS else _new), _KIND)
    _new.clear()


def _compiled(text: Any, file: Any, mode: str, *more: Any, **options: Any) -> Any:
    """Return the code of a text as the built-in function does."""
    if mode != "exec" or more or options or not isinstance(text, str):
        return compile(text, file, mode, *more, **options)
    key = (_SALT.sub("", text), file)
    code = _kept.get(key)
    if code is not None:
        with suppress(EOFError, ValueError, TypeError):  # a disk that lost power may have damaged it
            return marshal.loads(code)
    compiled = compile(text, file, mode)
    _new[key] = marshal.dumps(compiled)
    return compiled


def _read() -> _Texts:
    """Return the code in the file; none of a file that is damaged or could have been written by another user."""
    file = _file()
    content = None if file is None else read_own(file)
    try:
        found = {} if content is None else marshal.loads(content)
    except (EOFError, ValueError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _file() -> Path | None:
    folder = cache_folder()
    python = f"{sys.implementation.cache_tag}-{sys.hexversion:08x}"  # another one has other code
    return None if folder is None else folder / f"{_KIND}-{python}.marshal"
