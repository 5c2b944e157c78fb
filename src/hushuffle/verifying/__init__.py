"""An independent checker of certificates: ball arithmetic, without code of the rest of hushuffle.

The folder runs alone: copied anywhere, `python -m verifying result.json` needs Python and python-flint only.
"""
