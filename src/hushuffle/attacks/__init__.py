"""Attacks and audits that test privacy guarantees: linkage, inference, games, and lower bounds on epsilon."""
