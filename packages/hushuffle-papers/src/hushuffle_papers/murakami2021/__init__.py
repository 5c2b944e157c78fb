"""Murakami, Takahashi: Toward evaluating re-identification risks in the local privacy model (2021)."""
