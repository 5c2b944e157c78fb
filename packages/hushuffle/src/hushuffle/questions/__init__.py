"""Compute results from privacy curves, with one package for each question; the packages do not import each other."""
