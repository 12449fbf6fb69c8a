"""The commands of ``torc``, one module for each command or group of commands."""
