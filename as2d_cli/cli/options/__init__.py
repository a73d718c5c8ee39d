"""Options: declared once, read from flags, environment and configuration file, and made into a request."""
