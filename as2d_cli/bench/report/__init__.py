"""What the trials of a run come to: tables, a page, a time line; and the report of a projection."""
