"""Load generators: one plan in, one kind of measurement out. A file an engine."""
