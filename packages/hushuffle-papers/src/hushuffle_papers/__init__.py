"""The papers' tables and figures, recomputed: `registry` lists and computes them; `command` is the verb."""
