"""Numerical methods without domain concepts: accurate tails, directed rounding, certified roots."""
