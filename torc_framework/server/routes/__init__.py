"""The declared endpoints, one module for each subject; `table` lists all of them."""
