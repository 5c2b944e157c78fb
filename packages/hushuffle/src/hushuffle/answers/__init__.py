"""Kinds of answers: what the values of a column are, and what is estimated from them. Each kind is one file here."""
