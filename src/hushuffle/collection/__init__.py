"""Run a collection: read, randomize, shuffle, and record the used randomness; estimate from the released files."""
