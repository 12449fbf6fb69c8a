"""The base class of all classes of tables."""

import re
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel

from torc_framework.store.column_types import NAMING_CONVENTION

_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


class Base(SQLModel):
    """The base of all table classes, each named ``<Name>Row``; its table is ``<name>`` in snake case.

    pydantic builds the validators of a class when they are first used; the store never uses them.
    """

    model_config = {"defer_build": True}
    metadata = sa.MetaData(naming_convention=NAMING_CONVENTION)

    @declared_attr  # type: ignore[arg-type]  # SQLModel declares it so, too
    def __tablename__(cls) -> str:  # noqa: N805 - a class method for SQLAlchemy
        """Return the name of the class without ``Row``, in snake case."""
        return _WORD_START.sub("_", cls.__name__.removesuffix("Row")).lower()
