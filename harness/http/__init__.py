"""What HTTP/1.1 says, and bytes as people read them.

In: bytes. Out: messages with spans, what the grammar allows, text that is safe to print.
May use: model.
"""
