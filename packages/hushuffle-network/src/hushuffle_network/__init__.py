"""A network for phones over HTTP: relays, a chain of scramblers, targets and tokens; phones need no certificates."""
