"""The jobs that a runner holds and their attempts: launching, resources, stopping, endings, followers."""
