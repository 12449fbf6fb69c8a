"""What endings are called and what follows from them, as pure functions over tables.

Each module holds the words and codes of one system, with its source: Torc itself, Slurm, OSMO,
Kubernetes, other batch systems. Nothing here reads a file, a clock or the network, so that an
ending which was stored can be judged again with the same outcome. `torc_framework.exits.cases`
answers questions that are asked in JSON.
"""
