"""Identifiability of people from matching scores, in bits."""
