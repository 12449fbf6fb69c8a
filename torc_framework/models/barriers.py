"""`Barrier`: many jobs that all wait for the same jobs."""

from attrs import define


@define
class Barrier:
    """M jobs that each wait for all of the same N jobs, stored as M + N rows instead of M x N.

    Attributes:
        upstream: Positions of the N jobs for which the others wait.
        downstream: Positions of the M jobs that wait.
    """

    upstream: list[int]
    downstream: list[int]
