"""The runner's log: one event a line, as ``key=value`` pairs."""

import logging
from pathlib import Path
from typing import Any, Final

_ROOT: Final = logging.getLogger("torc_framework")
_LOG: Final = logging.getLogger("torc_framework.runner")
_FORMAT: Final = "%(asctime)s.%(msecs)03d level=%(levelname)s %(message)s"
_LEVELS: Final = {name.lower(): value for name, value in logging.getLevelNamesMapping().items()}


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or any(character in text for character in " =\"'\n") else text


class RunnerLog:
    """Writes events to the runner's log file, and whatever plugins log beside them."""

    def __init__(self, path: Path, level: str) -> None:
        self._handler = logging.FileHandler(path, encoding="utf-8", delay=True)
        self._handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S"))
        self._former_level = _ROOT.level
        _ROOT.setLevel(_LEVELS.get(level.lower(), logging.INFO))
        _ROOT.addHandler(self._handler)
        self.tells_details = _LOG.isEnabledFor(logging.DEBUG)

    def detail(self, event: str, **values: Any) -> None:
        """Note something that happens per job."""
        if self.tells_details:
            self._write(logging.DEBUG, event, values)

    def info(self, event: str, **values: Any) -> None:
        """Note something that happens now and then."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Note something that a person should look at."""
        self._write(logging.WARNING, event, values)

    @staticmethod
    def _write(level: int, event: str, values: dict[str, Any]) -> None:
        pairs = " ".join(f"{key}={_shown(value)}" for key, value in values.items() if value is not None)
        _LOG.log(level, "event=%s %s", event, pairs)

    def close(self) -> None:
        """Close the file."""
        _ROOT.removeHandler(self._handler)
        _ROOT.setLevel(self._former_level)
        self._handler.close()
