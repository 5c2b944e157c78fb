"""The commands `hushuffle plan` and `hushuffle node`."""
