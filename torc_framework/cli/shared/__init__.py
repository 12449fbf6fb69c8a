"""Parts that commands share: classes of commands, session, options, output of records."""
