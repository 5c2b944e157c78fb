"""Privacy curves: certified bounds on delta(epsilon) of a release, a family per module, and their composition."""
