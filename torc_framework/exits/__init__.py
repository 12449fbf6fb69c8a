"""Rules for ended attempts, as pure functions over tables.

An ending gets a class, a status and a return code (`classifier`), the rule of a failure handler that answers it
(`failure_rules`), and a diagnosis of its memory and run time (`memory_shortage`, `time_shortage`). The other modules
hold words and codes of one system each, with their sources. Without access to files, clock or network, so that a stored
ending is classified again with the same result.
"""
