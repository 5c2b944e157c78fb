"""The chapter on the order of the messages."""
