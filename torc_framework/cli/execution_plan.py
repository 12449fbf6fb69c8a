"""``torc workflows execution-plan``: in which stages jobs become ready."""
