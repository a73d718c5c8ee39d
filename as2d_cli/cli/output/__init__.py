"""What a command prints: results on stdout; messages, progress and the report on stderr."""
