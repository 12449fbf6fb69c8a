"""The typed HTTP client: what every face of the framework and every runner speaks to the server with."""

from torc_framework.client.torc_client import CompletionState, Page, TorcClient
from torc_framework.client.transport import make_url

__all__ = ["CompletionState", "Page", "TorcClient", "make_url"]
