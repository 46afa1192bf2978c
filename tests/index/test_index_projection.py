"""Projections: unbiased, deterministic, the same whatever the batch and the slab."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradian_core.gradients import projection
from gradian_core.gradients.projection import make_projection

KINDS = ["countsketch", "rademacher"]
DIM, WIDTH = 300, 40


def vectors(count=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, DIM, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_inner_products_are_unbiased_with_the_known_error(kind):
    pair = vectors()
    pair[1] += pair[0]
    exact = float(pair[0] @ pair[1])
    seeds = 800
    found = np.empty(seeds)
    for seed in range(seeds):
        small = make_projection(kind, DIM, WIDTH, seed, "block")(pair)
        found[seed] = float(small[0] @ small[1])
    # Var = (|x|²|y|² + <x,y>² - 2 Σ x²y²) / width for both families.
    squares = float((pair[0] ** 2 * pair[1] ** 2).sum())
    product = float(pair[0] @ pair[0]) * float(pair[1] @ pair[1])
    sigma = np.sqrt((product + exact**2 - 2 * squares) / WIDTH)
    assert abs(found.mean() - exact) < 4 * sigma / np.sqrt(seeds)
    assert found.std() == pytest.approx(sigma, rel=0.12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_seed_and_block_name_only(kind):
    rows = vectors()
    first = make_projection(kind, DIM, WIDTH, 7, "a")(rows)
    assert torch.equal(first, make_projection(kind, DIM, WIDTH, 7, "a")(rows))
    assert not torch.equal(first, make_projection(kind, DIM, WIDTH, 8, "a")(rows))
    assert not torch.equal(first, make_projection(kind, DIM, WIDTH, 7, "b")(rows))


def test_the_bits_do_not_change_between_versions():
    # An index of an earlier version must go on meaning the same.
    basis = torch.eye(DIM, dtype=torch.float64)[:4]
    sketch = make_projection("countsketch", DIM, WIDTH, 0, "x")(basis)
    assert [(int(r.abs().argmax()), int(r.sum())) for r in sketch] == SKETCH
    signs = make_projection("rademacher", DIM, WIDTH, 0, "x")(basis) * WIDTH**0.5
    assert [int(v) for v in signs[3, :8].round()] == SIGNS


SKETCH = [(30, 1), (24, 1), (16, -1), (38, -1)]
SIGNS = [-1, 1, 1, -1, 1, 1, 1, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_linear_and_row_by_row(kind):
    rows = vectors(5)
    project = make_projection(kind, DIM, WIDTH, 0, "b")
    together = project(rows)
    assert together.shape == (5, WIDTH)
    torch.testing.assert_close(together, torch.cat([project(row[None]) for row in rows]))
    torch.testing.assert_close(project(2 * rows[:1] - rows[1:2]), 2 * together[:1] - together[1:2])


@pytest.mark.parametrize("kind", KINDS)
def test_keeps_the_type(kind):
    assert make_projection(kind, DIM, WIDTH, 0, "b")(vectors().float()).dtype == torch.float32


def test_slabs_do_not_change_the_matrix(monkeypatch):
    rows = vectors()
    whole = make_projection("rademacher", DIM, 70, 3, "b")(rows)
    monkeypatch.setattr(projection, "SLAB_BYTES", 4 * 70 * 9)
    torch.testing.assert_close(make_projection("rademacher", DIM, 70, 3, "b")(rows), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_no_projection_where_it_saves_nothing(kind):
    assert make_projection(kind, DIM, DIM, 0, "b") is None


@pytest.mark.parametrize(("kind", "width"), [("gaussian", 4), ("countsketch", 0)])
def test_nonsense_is_refused(kind, width):
    with pytest.raises(ValueError, match="projection"):
        make_projection(kind, DIM, width, 0, "b")
