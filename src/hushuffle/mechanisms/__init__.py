"""The parts of a collection: local randomizers, shufflers, sketches, adversaries, and the protocol that joins them."""
