"""Figures only, a folder for each question; they read curves and never each other."""
