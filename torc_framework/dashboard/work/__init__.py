"""What the JSON routes answer: overviews, explanations, logs, and commands of ``torc``."""
