"""The parts of a collection: local randomizers, shufflers, Bloom filters, adversaries, and the complete protocol."""
