"""The chapter on reach: how many people, counted with flipped Bloom filters."""
