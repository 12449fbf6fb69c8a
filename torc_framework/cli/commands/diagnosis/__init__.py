"""Commands that explain failures and waiting jobs, and report on results and logs."""
