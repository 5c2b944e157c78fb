"""Private files, keys, temporary buckets, and the causes of the operating system's errors."""
