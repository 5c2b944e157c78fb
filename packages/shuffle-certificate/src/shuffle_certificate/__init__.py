"""An independent checker of certificates in ball arithmetic, without code from the rest of hushuffle.

A copy of this folder runs alone: `python -m shuffle_certificate result.json` needs only Python and python-flint.
"""
