"""A finished run to findings, an exit code and the files that CI reads.

In: a run. Out: findings, a conclusion, and one file an output format.
May use: model, http, catalogue, judging.
"""
