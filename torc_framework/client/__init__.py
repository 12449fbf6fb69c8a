"""The typed HTTP client: what every face of the framework and every runner speaks to the server with."""

from torc_framework.client.address import make_url
from torc_framework.client.answers import CompletionState, Page
from torc_framework.client.connect import make_api
from torc_framework.client.torc_client import TorcClient

__all__ = ["CompletionState", "Page", "TorcClient", "make_api", "make_url"]
