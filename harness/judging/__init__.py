"""Exchanges to verdicts, and verdicts to scores. No network.

In: cases and the exchanges in the evidence. Out: verdicts and the result of a suite.
May use: model, http, catalogue.
"""
