"""The kinds of records: the filters, relations and special rules of each; and queries over several of them."""
