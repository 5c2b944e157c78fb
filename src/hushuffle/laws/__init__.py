"""The law of what is released: what the analysis rooms share."""
