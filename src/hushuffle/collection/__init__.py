"""Run a collection: read, randomize, shuffle, keep account of coins; estimate from the files."""
