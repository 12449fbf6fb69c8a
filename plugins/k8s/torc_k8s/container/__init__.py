"""What torc runs inside a container: the program around a job's command, and the records that it writes."""
