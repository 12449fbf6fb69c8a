"""Groups of pods that one attempt consists of: their statuses, and what one pod's end means for the others."""
