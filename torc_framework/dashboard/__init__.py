"""The web dashboard: the application that ``torc-dash`` serves. README.md lists its routes.

The page in ``static`` uses the server's API, which this application passes on, and the JSON routes below ``dash/``,
which do what needs the machine of ``torc-dash``: logs, explanations, and commands of ``torc``.
"""
