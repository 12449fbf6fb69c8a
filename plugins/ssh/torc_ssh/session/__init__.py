"""Sessions with the helper of a host: requests, files, and what a host tells about itself."""

from torc_ssh.session.helper_requests import HelperError, SessionLost, clean_text
from torc_ssh.session.host_facts import HostFacts
from torc_ssh.session.host_session import HostSession
from torc_ssh.session.listed_files import ListedFile, listed_files
from torc_ssh.session.transfers import Progress

__all__ = [
    "HelperError",
    "HostFacts",
    "HostSession",
    "ListedFile",
    "Progress",
    "SessionLost",
    "clean_text",
    "listed_files",
]
