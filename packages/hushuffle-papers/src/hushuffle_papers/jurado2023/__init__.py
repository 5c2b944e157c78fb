"""Jurado, Gonze, Alvim, Palamidessi: Analyzing the shuffle model through the lens of quantitative information flow."""
