"""The nodes that run a plan: their identities, their messages, and what an observer of the connections sees."""
