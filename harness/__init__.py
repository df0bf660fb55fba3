"""The orchestrator of httpmark: the referee for HTTP/1.1 servers."""
