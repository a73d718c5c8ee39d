"""A run on the nodes of a Ray cluster: engines there, agenda, names and files here."""
