"""Run a query plan over a network: hosts, certificates, records, one process for each node."""
