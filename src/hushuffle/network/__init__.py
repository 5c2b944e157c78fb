"""Run a query plan over a network, with hosts, certificates, records of traffic, and one process for each node."""
