"""The sites of one run: what the runners of one process know of each other.

Every site has a runner of its own, in a thread of its own. A runner without a job stays while another one may still
complete a job that others depend on, and the dead runners of a site are left to the runner of that site.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

from attrs import define, field

from torc_framework.models.records import ComputeNodeRecord
from torc_framework.models.runner_location import site_of


class SiteState(Enum):
    """The progress of the runner of one site."""

    STARTING = auto()
    """It is being made for the first time, or again after an error."""
    ACTIVE = auto()
    """It holds jobs, may get some, or waits until its site can be reached again."""
    IDLE = auto()
    """It holds no job, and the server had none for it."""
    FAILED = auto()
    """It could not be made. Another try follows while others work."""
    ENDED = auto()
    """It has ended, and none follows."""


_MAY_WORK: Final = frozenset({SiteState.STARTING, SiteState.ACTIVE})
_TAKES_OVER_ITSELF: Final = frozenset({SiteState.STARTING, SiteState.ACTIVE, SiteState.IDLE})


class SiteGroup:
    """The states of all sites of a run, and which dead runners their runners may take over.

    It is used by the threads of all sites at once. Each changes the state of its own site only.

    Args:
        sites: Names of the sites.
        on_change: Called in any of these threads when the state of a site has changed.
    """

    def __init__(self, sites: Sequence[str], on_change: Callable[[], None] = lambda: None) -> None:
        self._states = dict.fromkeys(sites, SiteState.STARTING)
        self._on_change = on_change
        self._crashed: set[int] = set()

    def member(self, site: str) -> "SiteMember":
        """Return the part of the runner of a site."""
        return SiteMember(site, self)

    def state(self, site: str) -> SiteState:
        """Return the state of a site."""
        return self._states[site]

    def set_state(self, site: str, state: SiteState) -> None:
        """Change the state of a site."""
        if self._states[site] is not state:
            self._states[site] = state
            self._on_change()

    def other_may_work(self, site: str) -> bool:
        """Return whether the runner of another site holds jobs or may get some."""
        return any(state in _MAY_WORK for other, state in self._states.items() if other != site)

    @property
    def is_over(self) -> bool:
        """Whether no runner works or is about to."""
        return not any(state in _TAKES_OVER_ITSELF for state in self._states.values())

    # --- dead runners ----------------------------------------------------------------------------

    def may_take_over(self, node: ComputeNodeRecord, site: str) -> bool:
        """Return whether the runner of ``site`` may take over a dead runner.

        A runner takes over those of its own site, and those of sites whose runners take over nothing themselves because
        they are not part of this run or cannot begin.
        """
        its_site = site_of(node)
        return its_site == site or self._states.get(its_site) not in _TAKES_OVER_ITSELF

    def note_crashed(self, node_id: int) -> None:
        """Note that a runner ended by an error; another one takes over what it held."""
        self._crashed.add(node_id)

    def has_crashed(self, node: ComputeNodeRecord) -> bool:
        """Return whether a runner of this process ended by an error."""
        return node.id in self._crashed


@define(eq=False)
class SiteMember:
    """One runner's part of a `SiteGroup`.

    Attributes:
        site: Name of its site; empty for the only site of an executor without names.
        group: All sites.
        stays: The runner stays although it has no job: its launcher accepts none at present, or the runner of another
            site may complete a job that others depend on.
        takeover_is_due: There may be dead runners that were left to the runner of another site, which cannot begin.
            Set in any thread.
    """

    site: str
    group: SiteGroup
    stays: bool = False
    takeover_is_due: bool = field(default=False, init=False)

    def update(self, *, accepts: bool, is_idle: bool) -> bool:
        """Note the state of the runner; return whether the runners of all others have become idle since the last call.

        Args:
            accepts: Its launcher accepts attempts.
            is_idle: It holds no job, and the server had none for it.
        """
        self.group.set_state(self.site, SiteState.IDLE if accepts and is_idle else SiteState.ACTIVE)
        stayed, self.stays = self.stays, not accepts or self.group.other_may_work(self.site)
        return stayed and not self.stays
