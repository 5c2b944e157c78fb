"""Attacks and audits that test privacy guarantees: linkage, inference, attack games, and lower bounds on epsilon."""
