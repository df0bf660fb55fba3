"""Load plans to samples.

In: a plan and servers that can be started. Out: samples, intervals, and who was the bottleneck.
May use: model, http, catalogue, servers.
"""
