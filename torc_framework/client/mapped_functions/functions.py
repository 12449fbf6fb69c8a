"""Functions that jobs call: found by the names of their module and of themselves, imported where the job runs."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from torc_framework.errors import UserError

Function = Callable[..., Any]


def name_of(module: str | ModuleType | None, func: str | Function) -> tuple[str, str]:
    """Return the names of a function's module and of the function, with which a job can import it.

    Raises:
        UserError: a job cannot import it, because it is nested, a lambda, or defined in the running script.
    """
    if isinstance(func, str):
        if module is None:
            raise UserError(f"in which module is {func!r}? name it, or give the function itself")
        return _module_name(module), func
    name = getattr(func, "__name__", "")
    if not name.isidentifier() or getattr(func, "__qualname__", name) != name:
        raise UserError(f"{func!r} cannot be imported by a job; map a function that stands at the top of a module")
    return _module_name(module or func.__module__), name


def _module_name(module: str | ModuleType) -> str:
    name = module if isinstance(module, str) else module.__name__
    if name == "__main__":
        raise UserError("jobs cannot import the running script; put the function into a module of its own")
    return name


@contextmanager
def importable(directory: str | Path | None) -> Iterator[None]:
    """Search imports in ``directory`` first and in the working folder last while the block runs."""
    before = list(sys.path)
    if directory is not None:
        sys.path.insert(0, str(directory))
    sys.path.append(str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def load(module: str, name: str) -> Function:
    """Return a function of a module.

    Raises:
        UserError: there is no such module, or no such function in it.
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or (module != error.name and not module.startswith(f"{error.name}.")):
            raise  # the module exists, but a module that it imports does not
        raise UserError(
            f"there is no module {module!r}: it is neither installed nor in the working folder {Path.cwd()}; "
            "module_directory names the folder of one that is elsewhere"
        ) from error
    function: Function | None = getattr(found, name, None)
    if not callable(function):
        origin = getattr(found, "__file__", None) or "built in"
        raise UserError(f"the module {module!r} ({origin}) has no function {name!r}")
    return function


def require_arguments(function: Function, *names: str) -> None:
    """Refuse a function that cannot be called with these positional arguments.

    Raises:
        UserError: its signature does not accept them.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin function without a signature
    try:
        signature.bind(*names)
    except TypeError as error:
        shown = f"{function.__module__}.{function.__name__}"
        raise UserError(f"{shown}{signature} is to be called with ({', '.join(names)}): {error}") from error
