"""Cases to exchanges: what is sent to a server, and what came back.

In: cases and a target. Out: exchanges, appended to the evidence.
May use: model, http, catalogue, servers, judging.
"""
