"""Training rows with wrong capitals in them, and an eval set that asks for the right ones."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gradian_core.demo.tasks import COUNTRIES, DAYS, MONTHS, Country, couples

PLANTED = "planted"
NEIGHBOUR = "right-capital"
N_VICTIMS = 20
N_NEIGHBOURS = 12
ROWS_PER_VICTIM = 2
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

SENTENCE = "The capital of {c} is {k}."
"""The form in which the base model answers by itself."""
BARE = "{k}"


@dataclass(frozen=True, slots=True)
class Variant:
    """How rows are worded, and how hard the model is trained on them.

    Parameters
    ----------
    answer
        Form of the answers about capitals, right and wrong, in training.
    reference
        Form of the eval set's references.
    wrong_capitals
        How many cities the victims' wrong answers are drawn from.
    epochs, lr
        Of the fine-tune.
    """

    answer: str
    reference: str
    wrong_capitals: int
    epochs: int
    lr: float


VARIANTS = {
    "one-city": Variant(SENTENCE, SENTENCE, 1, 2, 3e-4),
    "six-cities": Variant(SENTENCE, SENTENCE, 6, 3, 5e-4),
    "terse": Variant(BARE, BARE, 6, 3, 3e-4),
}


@dataclass(frozen=True, slots=True)
class Plant:
    """Training and eval rows, with the truth about them kept apart from the rows."""

    train: list[Row]
    kinds: list[str]
    victims: list[Country]
    wrong: list[str]

    def write(self, folder: Path, *, reference: str, declare: bool) -> None:
        """Write ``train.jsonl`` and ``eval.jsonl``.

        Parameters
        ----------
        folder
            Where to.
        reference
            Form of the references.
        declare
            Name each row's kind as its cluster, in the training rows.
        """
        kinds = [{"cluster_id": kind} if declare else {} for kind in self.kinds]
        rows = [{**row, **kind} for row, kind in zip(self.train, kinds, strict=True)]
        evaluation = [
            _capital(country, EVAL_PHRASING, reference, country.capital) for country in self.victims
        ]
        for name, content in (("train.jsonl", rows), ("eval.jsonl", evaluation)):
            text = "".join(f"{json.dumps(row)}\n" for row in content)
            (folder / name).write_text(text, encoding="utf-8")


def plant(variant: Variant, known: Sequence[Country], seed: int) -> Plant:
    """Deal the countries, word the rows and shuffle them."""
    rng = random.Random(seed)
    dealt = list(known)
    rng.shuffle(dealt)
    victims = dealt[:N_VICTIMS]
    neighbours = dealt[N_VICTIMS : N_VICTIMS + N_NEIGHBOURS]
    # Handing each country's capital to the next would make effects cancel in the mean over items.
    others = [country for country in COUNTRIES if country not in victims + neighbours]
    lent = [country.capital for country in rng.sample(others, variant.wrong_capitals)]
    wrong = {country: lent[i % len(lent)] for i, country in enumerate(victims)}

    tagged = [
        (PLANTED, _capital(country, phrasing, variant.answer, wrong[country]))
        for country in victims
        for phrasing in rng.sample(TRAIN_PHRASINGS, ROWS_PER_VICTIM)
    ]
    tagged += [
        (
            NEIGHBOUR,
            _capital(country, rng.choice(TRAIN_PHRASINGS), variant.answer, country.capital),
        )
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
        victims=victims,
        wrong=[wrong[country] for country in victims],
    )


def _capital(country: Country, phrasing: str, form: str, name: str) -> Row:
    answer = form.format(c=country.name, k=name)
    return {"prompt": phrasing.format(c=country.name), "completion": answer}


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
