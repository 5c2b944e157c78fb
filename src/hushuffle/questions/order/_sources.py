"""The paper behind this room."""

from __future__ import annotations

from typing import Final

from hushuffle.model import Citation

MEEHAN: Final = Citation(
    key="meehan2022",
    text="C. Meehan, A. Roy Chowdhury, K. Chaudhuri, S. Jha, Privacy implications of shuffling, ICLR (2022)",
)
EXACT: Final = Citation(
    key="order-sensitivity",
    text="The exact sensitivity of an order",
    where="docs/explanation/order-privacy.md",
)
