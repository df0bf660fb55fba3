"""A finished run to what people look at.

In: a run and its evidence. Out: the page, tables, the scoreboard, explanations.
May use: model, http, catalogue, judging, gate, load, servers.
"""
