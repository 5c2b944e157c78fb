"""Assesses, compares, calibrates and chooses deployments: the privacy and the accuracy of each."""
