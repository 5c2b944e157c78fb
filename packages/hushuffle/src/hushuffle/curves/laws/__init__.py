"""Laws: privacy curves of the releases that no rule makes simpler."""
