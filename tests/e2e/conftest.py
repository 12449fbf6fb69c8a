"""Fixtures of the tests of commands."""

from terminal_talk import talk

__all__ = ["talk"]
