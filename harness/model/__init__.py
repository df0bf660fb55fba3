"""The nouns, frozen: every other wing speaks in these.

In: nothing. Out: structs and enums for cases, exchanges, verdicts, servers, load and runs.
May use: no other wing.
"""
