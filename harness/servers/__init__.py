"""Servers brought up, watched and stopped; the machine they run on.

In: `images/*/server.toml`, or an address. Out: a server that answers, and what it uses.
May use: model, http.
"""
