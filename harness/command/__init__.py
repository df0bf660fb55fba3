"""The `httpmark` command, a file a command. Nothing else prints.

In: words of the command line and of configuration files. Out: calls, text, exit codes.
May use: every wing.
"""
