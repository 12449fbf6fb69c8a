"""The contract suites: classes of tests that hold for every plugin of a kind."""
