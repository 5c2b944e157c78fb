"""Central differential privacy."""
