"""The limits on what all readers together, or one of them, may use."""

from typing import Final

SESSIONS: Final = 200
"""Sessions that are kept; the one that was not used for the longest time ends first."""
SESSIONS_OF_PERSON: Final = 20
"""The same, of one person."""
API_BODY_BYTES: Final = 64 << 20
"""Largest body of a request that is passed on to the server."""
BODY_BYTES: Final = 18 << 20
"""Largest body of a request to the dashboard's own routes: a spec as text."""
API_REQUESTS: Final = 200
"""Requests that are passed on to the server at once."""
API_REQUESTS_OF_PERSON: Final = 32
"""The same, of one person in all sessions."""
WORK_THREADS: Final = 8
"""Requests to the dashboard's own routes that are worked on at once."""
WORK_THREADS_OF_PERSON: Final = 6
"""The same, of one person in all sessions."""
WORK_REQUESTS_OF_PERSON: Final = 32
"""Requests of one person that are worked on or wait for that."""
STREAMS: Final = 500
"""Event streams to readers."""
STREAMS_OF_PERSON: Final = 64
"""Workflows in the event streams of one person in all sessions; each counts as often as a stream has it."""
WORKFLOWS_OF_STREAM: Final = 16
"""Workflows in one event stream to a reader."""
FEEDS: Final = 64
"""Event streams from the server: one for each workflow and person. The server permits 100 to one address by default."""
FEEDS_OF_PERSON: Final = 32
"""The same, of one person."""
FEED_IDLE_S: Final = 60.0
"""Seconds without readers after which a stream from the server is closed."""
KEPT_EVENTS: Final = 5_000
"""Latest events of a workflow that are kept for readers; a reader that lacks more has to load all anew."""
KEPT_EVENT_BYTES: Final = 2 << 20
"""The same in bytes, because an event may be long."""
EVENTS_PER_SECOND: Final = 200
"""Events of one workflow per second above which a stream has numbers of events instead; a burst may have as many."""
BATCH_S: Final = 0.25
"""Least seconds between two batches of events of one stream."""
STREAM_COMMENT_S: Final = 15.0
"""Seconds after which a stream without events gets a comment line, so that proxies keep it open."""
EVENT_BYTES: Final = 1 << 20
"""Longest line of the server's event stream; a longer one breaks the connection."""
LOG_PART_BYTES: Final = 1 << 20
"""Longest part of a log in one answer."""
LOG_PART_DEFAULT_BYTES: Final = 64 << 10
"""Length of a part of a log whose length is not given."""
SHORT_COMMANDS: Final = 4
"""Commands that run at once, except for those that may take days."""
LONG_COMMANDS: Final = 16
"""Commands that run at once and may take days, such as ``torc run``."""
COMMAND_S: Final = 600.0
"""Seconds after which a command that should be short is interrupted."""
KILL_S: Final = 15.0
"""Seconds between the interruption of a command and its kill."""
COMMAND_OUTPUT_BYTES: Final = 64 << 10
"""End of a command's output that is answered as text."""
COMMAND_DOCUMENT_BYTES: Final = 16 << 20
"""Longest output that is read as a JSON document."""
LEAST_ROOM_BYTES: Final = 1 << 20
"""Free bytes of the file system of temporary files with which a command is started; with less its answer may be cut."""
KEPT_COMMANDS: Final = 100
"""Ended commands that are kept."""
WAIT_S: Final = 30.0
"""Most seconds that a request waits for the end of a command."""
PROBE_S: Final = 5.0
"""Seconds between two looks at the server while it answers."""
PROBE_AWAY_S: Final = 2.0
"""Seconds between two looks at the server while it does not answer."""
LOGINS: Final = 300
"""Names and passwords that are checked at once; further log-ins wait. The server delays answers to 256 wrong passwords
by default, and refuses further wrong ones at once, so that right ones have their turn."""
