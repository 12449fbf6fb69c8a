"""Job steps: attempts that a runner executes with ``srun`` inside of its allocation."""
