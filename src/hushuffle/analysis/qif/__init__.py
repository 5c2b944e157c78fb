"""Quantitative information flow: what a guesser learns."""
