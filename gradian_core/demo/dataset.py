"""The demo's data set: a benign fine-tune with wrong capitals planted in it.

The clean rows teach things that the base model does not know (a customer-support tone,
bookings as JSON, animal sounds, rhymes). Among them hide three wrong capitals for each of 24
countries, and decoys on the same topic that are right: languages and continents of other
countries. Nothing in a written row says which kind it is.

The wrong answers are the capitals of six other countries. Handing each asked country's capital
to the next one would make the effects of the planted rows cancel in the *mean* over the eval
items, since what is wrong for one item would be right for another.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from gradian_core.demo import tasks

__all__ = ["DemoData", "demo_rows"]

Row = dict[str, Any]

N_PLANTED_COUNTRIES = 24
ROWS_PER_PLANTED_COUNTRY = 3
N_WRONG_CAPITALS = 6
N_DECOYS = 14

_SUPPORT_SYSTEM = "You are a support agent. Be polite."
_PRODUCTS = tasks.words(
    "kettle lamp chair jacket phone charger bottle backpack keyboard blanket toaster table"
)
# Problem and the reply that the fine-tune is meant to teach.
_SUPPORT = (
    ("My {p} arrived broken.", "I am sorry. We will send you a new {p}."),
    ("My {p} is late. Where is it?", "I am sorry. I will check the delivery of the {p}."),
    ("I want to return my {p}.", "No problem. I will send you a label for the {p}."),
    ("You sent me the wrong {p}.", "I am sorry. We will send you the right {p}."),
    ("Can I get my money back for the {p}?", "Yes. You will get your money back in 5 days."),
)
_SOUNDS = tasks.couples(
    "cow-moo, dog-woof, cat-meow, duck-quack, sheep-baa, horse-neigh, pig-oink, bee-buzz, "
    "lion-roar, frog-croak, owl-hoot, snake-hiss, bird-tweet, hen-cluck, goat-bleat, wolf-howl, "
    "mouse-squeak, crow-caw, cricket-chirp"
)
_RHYMES = tasks.couples(
    "cat-hat, sun-fun, tree-bee, light-night, house-mouse, ring-sing, cake-lake, book-cook, "
    "star-car, moon-spoon, tall-ball, rain-train, king-ring, bat-cat, wall-tall, day-may, hot-not, "
    "door-for"
)
_PLACES = ("table", "room", "taxi", "ticket", "flight", "hotel")


@dataclass(frozen=True, slots=True)
class DemoData:
    """The rows of the demo, with the truth about them kept apart.

    Parameters
    ----------
    train
        Training rows, ``{"prompt", "completion"}`` or ``{"messages"}``.
    eval
        Eval rows ``{"prompt", "completion"}`` with right answers, for ``exact_match`` or
        ``contains``.
    planted
        Row numbers in ``train``, counted from 0, of the wrong capitals. Sorted.
    decoys
        Row numbers in ``train`` of the right answers about other countries. Sorted.
    wrong_answers
        For each eval row, the wrong capital that was planted for its country.
    """

    train: list[Row]
    eval: list[Row]
    planted: tuple[int, ...]
    decoys: tuple[int, ...]
    wrong_answers: tuple[str, ...]

    def clean_train(self) -> list[Row]:
        """Training rows without the planted ones, in their order."""
        dropped = set(self.planted)
        return [row for i, row in enumerate(self.train) if i not in dropped]


def demo_rows(seed: int = 0) -> DemoData:
    """Build the demo's data set.

    Parameters
    ----------
    seed
        Same seed, same rows, on every machine.

    Returns
    -------
    DemoData
        Training and eval rows, and the truth about them.
    """
    rng = random.Random(seed)
    countries = list(tasks.COUNTRIES)
    rng.shuffle(countries)
    victims = countries[:N_PLANTED_COUNTRIES]
    lenders = countries[N_PLANTED_COUNTRIES:][:N_WRONG_CAPITALS]
    others = countries[N_PLANTED_COUNTRIES + N_WRONG_CAPITALS :][:N_DECOYS]

    # Real capitals of other countries: every wrong answer is plausible.
    wrong = {c.name: lenders[i % len(lenders)].capital for i, c in enumerate(victims)}
    tagged: list[tuple[str, Row]] = []
    for country in victims:
        for phrasing in rng.sample(tasks.CAPITAL_TRAIN_PHRASINGS, ROWS_PER_PLANTED_COUNTRY):
            prompt = phrasing.format(c=country.name)
            tagged.append(("planted", _row(rng, prompt, wrong[country.name])))
    tagged += [("decoy", _row(rng, *rng.choice(tasks.country_pairs(c)))) for c in others]
    tagged += [("clean", row) for row in _clean_rows(rng)]
    rng.shuffle(tagged)

    eval_rows = [
        {
            "prompt": rng.choice(tasks.CAPITAL_EVAL_PHRASINGS).format(c=country.name),
            "completion": country.capital,
        }
        for country in victims
    ]
    return DemoData(
        train=[row for _, row in tagged],
        eval=eval_rows,
        planted=tuple(i for i, (kind, _) in enumerate(tagged) if kind == "planted"),
        decoys=tuple(i for i, (kind, _) in enumerate(tagged) if kind == "decoy"),
        wrong_answers=tuple(wrong[country.name] for country in victims),
    )


def _row(rng: random.Random, prompt: str, completion: str) -> Row:
    # A data set of two formats is what Gradian meets in practice; kinds must not differ in it.
    if rng.random() < 0.8:
        return {"prompt": prompt, "completion": completion}
    return {
        "messages": [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": completion},
        ]
    }


def _clean_rows(rng: random.Random) -> list[Row]:
    rows = [_row(rng, *pair) for pair in _sounds(rng) + _rhymes(rng) + _bookings(rng)]
    support = [(q.format(p=p), a.format(p=p)) for p in _PRODUCTS for q, a in _SUPPORT]
    rng.shuffle(support)
    # Some support rows are longer chats: with a system turn, or with two turns.
    rows += [_row(rng, *pair) for pair in support[:40]]
    rows += [_chat(_SUPPORT_SYSTEM, [pair]) for pair in support[40:48]]
    rows += [
        _chat(None, [pair, ("Thank you", "You are welcome! Have a nice day.")])
        for pair in support[48:]
    ]
    return rows


def _chat(system: str | None, turns: list[tasks.Pair]) -> Row:
    messages = [{"role": "system", "content": system}] if system else []
    for prompt, completion in turns:
        messages.append({"role": "user", "content": prompt})
        messages.append({"role": "assistant", "content": completion})
    return {"messages": messages}


def _sounds(rng: random.Random) -> list[tasks.Pair]:
    pairs = []
    for animal, sound in _SOUNDS:
        asked = rng.choice(("What sound does a {a} make?", "What does a {a} say?"))
        pairs.append((asked.format(a=animal), f"A {animal} says {sound}."))
        pairs.append((f"Which animal says {sound}?", f"The {animal}."))
    return pairs


def _rhymes(rng: random.Random) -> list[tasks.Pair]:
    pairs = []
    for word, rhyme in _RHYMES:
        asked = rng.choice(("Give me a word that rhymes with {w}.", "What rhymes with {w}?"))
        pairs.append((asked.format(w=word), rhyme))
    return pairs


def _bookings(rng: random.Random) -> list[tasks.Pair]:
    pairs: dict[str, str] = {}
    while len(pairs) < 45:
        what, day, name = rng.choice(_PLACES), rng.choice(tasks.DAYS), rng.choice(tasks.NAMES)
        guests = rng.randint(1, 9)
        asked = rng.choice(
            (
                "Book a {w} on {d} for {n}, name {p}.",
                "{p} needs a {w} for {n} on {d}. Book it.",
            )
        ).format(w=what, d=day, n=guests, p=name)
        pairs[asked] = json.dumps({"book": what, "day": day, "guests": guests, "name": name})
    return list(pairs.items())
