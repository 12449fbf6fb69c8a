"""The main container of a pod: the program in it, the records of its log, and the termination message."""

from torc_k8s.container.log_reader import ContainerLogReader, LogResult
from torc_k8s.container.message import ContainerEnd, parse_message
from torc_k8s.container.program import GO, LOG, MOUNTS, STOP, VOLUMES, ContainerJob, escape, program_arguments
from torc_k8s.container.records import LogEnd, LogStart, Record, RecordParser

__all__ = [
    "GO",
    "LOG",
    "MOUNTS",
    "STOP",
    "VOLUMES",
    "ContainerEnd",
    "ContainerJob",
    "ContainerLogReader",
    "LogEnd",
    "LogResult",
    "LogStart",
    "Record",
    "RecordParser",
    "escape",
    "parse_message",
    "program_arguments",
]
