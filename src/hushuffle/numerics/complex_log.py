"""ln(1 + z) for complex z, without cancellation near z = 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import Floats

Complex = npt.NDArray[np.complex128]


def log1p_parts(real: Floats, imaginary: Floats) -> tuple[Floats, Floats]:
    """Return ln|1 + z| and the angle of 1 + z; at z = -1 the logarithm is about -690.

    >>> [part.tolist() for part in log1p_parts(np.array([-1.0]), np.array([1.0]))]
    [[0.0], [1.5707963267948966]]
    """
    real, imaginary = np.broadcast_arrays(real, imaginary)
    square = real * (2 + real) + imaginary**2  # |1 + z|**2 - 1
    size = np.log1p(np.maximum(square, -0.5)) / 2
    far = square <= -0.5
    if far.any():
        size = np.where(far, 0.0, size)
        size[far] = np.log(np.maximum(np.hypot(1 + real[far], imaginary[far]), 1e-300))
    return size, np.arctan2(imaginary, 1 + real)


def complex_log1p(z: Complex) -> Complex:
    """Return ln(1 + z)."""
    size, angle = log1p_parts(z.real, z.imag)
    return np.asarray(size + 1j * angle)
