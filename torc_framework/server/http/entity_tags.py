"""Entity tags: names of the state of a response, with which a client asks whether it has changed."""

from typing import Final

from torc_framework import __version__

NOT_MODIFIED: Final = 304
_ANY: Final = "*"
_WEAK: Final = "W/"


def entity_tag(text: str) -> str:
    """Return the value of the header ``ETag`` for a text of letters, digits and dots.

    It names the version of the program, too, which may make another response of the same state.
    """
    return f'"{__version__}-{text}"'


def has_tag(if_none_match: str | None, tag: str) -> bool:
    """Return whether the header ``If-None-Match`` names a tag (RFC 9110, section 13.1.2).

    Weak tags count, because proxies that compress make them of strong ones.
    """
    if if_none_match is None:
        return False
    named = [each.strip().removeprefix(_WEAK) for each in if_none_match.split(",")]
    return tag in named or named == [_ANY]
