"""The sample's own tests run where the sample is installed."""

collect_ignore_glob = ["torc-sample/*"]
