"""Access to the Kubernetes API: configuration, requests, the watch of pods, streams of logs."""
