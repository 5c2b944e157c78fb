"""Privacy curves, which are certified bounds on delta(epsilon) of a release: a family per module, and composition."""
