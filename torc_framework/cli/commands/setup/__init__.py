"""Commands on the installation: configuration, plugins, profiles of clusters, completions, the server's status."""
