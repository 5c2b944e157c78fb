"""Private files, keys, temporary buckets, and the causes of what the system refuses."""
