"""The nodes that run a plan, with their identities and messages, and a record of what an observer sees."""
