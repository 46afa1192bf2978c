"""Which rows an arm leaves out, in which order, and what its scores prove."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.config.models import TrainSection
from gradian_core.errors import UsageError
from gradian_core.retraining.arms import equal_mass, visits
from gradian_core.retraining.effect import measure_effect
from gradian_core.retraining.settings import repeated_settings, total_steps
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainerLog, TrainingConfig, Value


@given(
    mass=st.lists(st.integers(1, 40), min_size=6, max_size=60),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_random_rows_weigh_what_the_accused_do(mass, seed, data):
    mass = np.array(mass)
    accused = data.draw(st.sets(st.integers(0, len(mass) - 1), min_size=1, max_size=len(mass) // 3))
    wanted = int(mass[list(accused)].sum())
    if int(mass.sum()) - wanted <= wanted:
        with pytest.raises(UsageError, match="of all"):
            equal_mass(mass, accused, seed)
        return
    drawn = equal_mass(mass, accused, seed)
    assert not drawn & accused
    assert abs(int(mass[list(drawn)].sum()) - wanted) < mass.max()
    assert drawn == equal_mass(mass, accused, seed)


def test_rows_that_are_not_trained_on_weigh_nothing_and_are_not_drawn():
    mass = np.array([5, 0, 5, 0, 5])
    assert equal_mass(mass, {0}, 0) < {2, 4}


@given(
    n=st.integers(2, 30),
    count=st.integers(1, 100),
    seed=st.integers(0, 9),
    data=st.data(),
)
def test_arms_see_the_rows_that_they_share_in_the_same_order(n, count, seed, data):
    dropped = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    order = visits(n, dropped, count, seed)
    assert len(order) == count
    assert not set(order) & dropped
    whole = [row for row in visits(n, (), count * n, seed) if row not in dropped]
    assert order == whole[:count]


def test_every_epoch_visits_every_row_once():
    order = visits(5, (), 10, 3)
    assert sorted(order[:5]) == sorted(order[5:]) == list(range(5))
    assert order[:5] != order[5:]


def scores(*shape, value):
    return np.full(shape, value, dtype=float)


def judged(accused, random, *, full=0.2):
    rng = np.random.default_rng(0)
    items = 40

    def arm(mean, *shape):
        return (rng.random((*shape, items)) < mean).astype(float)

    return measure_effect(
        scores(items, value=1.0), arm(full, 2), arm(accused, 2), arm(random, 2, 2)
    )


def test_what_comes_back_only_without_the_accused_is_proven():
    effect = judged(accused=0.95, random=0.25)
    assert effect.verdict == "proven"
    assert effect.effect > 0.5
    assert effect.lost == pytest.approx(0.8, abs=0.1)


def test_what_comes_back_without_any_rows_is_not_proven():
    assert judged(accused=0.95, random=0.93).verdict == "not proven"


def test_a_small_part_of_what_was_lost_is_not_proven():
    effect = measure_effect(
        scores(400, value=1.0),
        scores(2, 400, value=0.0),
        scores(2, 400, value=0.2),
        scores(2, 2, 400, value=0.0),
    )
    assert effect.effect == pytest.approx(0.2)
    assert effect.standard_error == 0.0
    assert effect.verdict == "not proven"


def test_nothing_lost_is_not_reproduced():
    effect = judged(accused=1.0, random=1.0, full=1.0)
    assert effect.verdict == "not reproduced"
    assert effect.share is None


def test_scatter_of_seeds_is_counted():
    # items agree perfectly, retrainings do not: 1 and 0 without the accused, 0 otherwise
    accused = np.stack([scores(30, value=1.0), scores(30, value=0.0)])
    effect = measure_effect(
        scores(30, value=1.0), scores(2, 30, value=0.0), accused, scores(1, 2, 30, value=0.0)
    )
    # pooled variance of three arms with two seeds each: 0.5 / 3; two means of two seeds
    assert effect.standard_error == pytest.approx(np.sqrt(0.5 / 3 * (1 / 2 + 1 / 2)))
    assert effect.verdict == "not proven"


def test_one_seed_tells_nothing_about_scatter():
    one = scores(1, 5, value=1.0)
    with pytest.raises(ValueError, match="two seeds"):
        measure_effect(scores(5, value=1.0), one, one, one[None])


# --- settings ----------------------------------------------------------------------------------


def adapter(**raw):
    return AdapterInfo(path=None, peft_type="LORA", raw={"r": 32, "lora_alpha": 64, **raw})


def run(values, records=()):
    return RunArtifact(
        path=None,
        reader="hf",
        training=TrainingConfig(
            tool="transformers",
            values={name: Value(value, "trainer_state.json") for name, value in values.items()},
        ),
        log=TrainerLog(records=tuple(records), source="trainer_state.json"),
    )


def test_the_config_wins_over_the_run_and_the_run_over_defaults():
    settings, sources = repeated_settings(
        TrainSection(learning_rate=1e-3),
        adapter(target_modules={"v_proj", "q_proj"}),
        run({"learning_rate": 5e-4, "num_train_epochs": 4}),
    )
    assert (settings.learning_rate, sources["learning_rate"]) == (1e-3, "section train")
    assert (settings.num_train_epochs, sources["num_train_epochs"]) == (4, "trainer_state.json")
    assert (settings.r, sources["r"]) == (32, "adapter_config.json")
    assert settings.target_modules == ["q_proj", "v_proj"]
    assert sources["weight_decay"] == "default"


def test_a_rate_that_no_file_names_is_read_off_the_log():
    rates = [5e-4, 1e-3, 2e-3, 1e-3, 0.0]
    records = [{"step": i + 1, "learning_rate": rate} for i, rate in enumerate(rates)]
    settings, sources = repeated_settings(TrainSection(), adapter(), run({}, records))
    assert settings.learning_rate == 2e-3
    assert "highest" in sources["learning_rate"]
    assert settings.extra == {"warmup_steps": 2}


def test_steps_of_warmup_are_kept_as_steps_and_shares_as_shares():
    settings, _ = repeated_settings(TrainSection(), adapter(), run({"warmup_steps": 20}))
    assert settings.extra == {"warmup_steps": 20}
    settings, _ = repeated_settings(TrainSection(), adapter(), run({"warmup_steps": 0.1}))
    assert settings.warmup_ratio == 0.1


def test_steps_are_counted_as_transformers_counts_them():
    settings = TrainSection(
        per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=3
    )
    assert total_steps(17, settings) == 9
    assert total_steps(17, settings, epochs=1) == 3
