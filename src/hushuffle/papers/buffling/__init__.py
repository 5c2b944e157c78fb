"""Privacy of shuffled and flipped Bloom filters: the technical document of the package buffling."""
