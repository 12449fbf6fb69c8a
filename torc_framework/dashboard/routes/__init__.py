"""The routes below ``api/`` and ``dash/``: requests are checked here, and answered by the other folders."""
