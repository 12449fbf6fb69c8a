"""A plugin-based workflow orchestrator: one declarative spec, a durable server, executors as plugins."""

__version__ = "0.1.0"
