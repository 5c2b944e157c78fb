"""A network for phones: relays, scramblers in a chain, targets and tokens over HTTP; no certificate for a phone."""
