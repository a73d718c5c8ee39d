"""What a benchmark came to: tables, an HTML page, word error rates, a trace."""
