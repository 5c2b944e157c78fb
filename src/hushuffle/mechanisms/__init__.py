"""What is described: local randomizers, shufflers, sketches, adversaries, and the protocol of them."""
