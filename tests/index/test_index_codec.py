"""Half floats keep eleven bits of a gradient of any size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradian_core.index.codec import decode, encode

FINITE = st.floats(-(2.0**126), 2.0**126, width=32)


@given(arrays(np.float32, (3, 5), elements=FINITE))
def test_error_is_bounded_by_half_an_ulp(values):
    codes, scales = encode(values)
    assert codes.dtype == np.float16
    assert np.isfinite(codes).all()
    error = np.abs(decode(codes, scales).astype(np.float64) - values)
    largest = np.abs(values.astype(np.float64)).max(axis=1, keepdims=True)
    # The last two terms are float16's and float32's subnormal steps.
    bound = np.abs(values.astype(np.float64)) * 2**-11 + largest * 2**-38 + 2.0**-149
    assert (error <= bound).all()


def test_scales_are_powers_of_two():
    values = np.array([[3e-7, 1e-9], [5e20, 1.0], [0.0, 0.0]], dtype=np.float32)
    _, scales = encode(values)
    mantissas, _ = np.frexp(scales)
    assert (mantissas == 0.5).all()
    assert scales[2] == 1.0


def test_tiny_gradients_survive_where_plain_float16_loses_them():
    rng = np.random.default_rng(0)
    values = (1e-9 * rng.standard_normal((4, 1000))).astype(np.float32)
    assert not values.astype(np.float16).any()
    codes, scales = encode(values)
    error = np.linalg.norm(decode(codes, scales) - values) / np.linalg.norm(values)
    # Rounding to 11 bits: uniform in half an ulp either way gives about 2**-12.5.
    assert 1e-4 < error < 3e-4


def test_large_gradients_do_not_overflow():
    values = np.array([[3e38, -1e38, 1.0]], dtype=np.float32)
    codes, scales = encode(values)
    np.testing.assert_allclose(decode(codes, scales)[0, :2], values[0, :2], rtol=2**-11)
