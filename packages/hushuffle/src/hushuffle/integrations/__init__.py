"""Releases of hushuffle inside other libraries: `dp_accounting` (events and an accountant), `opendp` (measurements)."""
