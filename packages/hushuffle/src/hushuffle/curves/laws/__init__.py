"""Laws: privacy curves of releases in normal form."""
