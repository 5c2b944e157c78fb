"""Attacks and measured utility: what the promises are tested with. scikit-learn lives here, and only here."""
