"""Attempts as processes of one machine, which outlive the program that starts them.

`attempts.SupervisedAttempts` is the entrance. The package needs nothing but Python 3.8 and its standard library, so
that it can be sent to another machine (`sources.package_sources`) and run there.
"""
