"""Ladjel, Anciaux, Bellet, Scerri: Mitigating leakage from data dependent communications (2021)."""
