"""Run a collection: read, randomize and shuffle records, and record the used randomness; estimate from releases."""
