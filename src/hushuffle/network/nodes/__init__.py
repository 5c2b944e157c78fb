"""Plans run by real nodes: who they are, what they send each other, what somebody on the wire sees of it."""
