"""Create, read, update and delete records of any kind; the events of a workflow; rules that several kinds share."""
