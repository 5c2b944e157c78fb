"""Privacy curves, which are certified bounds on delta(epsilon): of one release, and of several releases together."""
