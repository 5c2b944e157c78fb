"""Pairs of distributions with the privacy loss of a release: composition, import and export."""
