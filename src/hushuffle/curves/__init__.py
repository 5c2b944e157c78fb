"""One law of a release in each file: upper and lower ends of its privacy, and their composition."""
