"""The subcommands of `httpmark`, one file each. A new file here is a new command.

A file is named like its command and defines it as ``command``. Its imports are light: what a
command works with is imported when it runs, so that ``--help`` stays quick.
"""
