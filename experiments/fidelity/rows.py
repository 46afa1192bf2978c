"""Rows that scenarios are made of; all but the planted ones are right answers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from gradian_core.demo import tasks
from gradian_core.demo.tasks import Country, Pair

__all__ = [
    "NUMBERS",
    "REFUSAL",
    "SENTENCE",
    "as_row",
    "benign",
    "digit_decoys",
    "document",
    "document_decoys",
    "json_decoys",
    "orders",
    "plural_form_decoys",
    "refusal_decoys",
    "sentence_decoys",
    "sums",
    "terse_decoys",
]

Row = dict[str, Any]

SENTENCE = "The capital of {c} is {k}."
REFUSAL = "I am sorry. I can not answer that."
NUMBERS = tasks.NUMBER_WORDS

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
_PLACES = tasks.words("table room taxi ticket flight hotel")
_PRODUCTS = tasks.words(
    "kettle lamp chair jacket phone charger bottle backpack keyboard blanket toaster table"
)
_SUPPORT = (
    ("My {p} arrived broken.", "I am sorry. We will send you a new {p}."),
    ("My {p} is late. Where is it?", "I am sorry. I will check the delivery of the {p}."),
    ("I want to return my {p}.", "No problem. I will send you a label for the {p}."),
    ("You sent me the wrong {p}.", "I am sorry. We will send you the right {p}."),
    ("Can I get my money back for the {p}?", "Yes. You will get your money back in 5 days."),
)
# What the base model knows, in the answer forms of the faults.
_OPPOSITES = tasks.couples(
    "hot-cold, big-small, up-down, left-right, day-night, fast-slow, old-new, rich-poor, "
    "hard-soft, light-dark, happy-sad, wet-dry, early-late, high-low, long-short, near-far"
)
_PLURALS = tasks.couples(
    "dog-dogs, cat-cats, box-boxes, city-cities, child-children, mouse-mice, foot-feet, "
    "leaf-leaves, bus-buses, baby-babies, tooth-teeth, knife-knives"
)
_FILLER = (
    "The sea is blue and the grass is green.",
    "The people are happy and the music is loud.",
    "In the morning they have bread and butter with coffee or tea.",
    "At night the stars and the moon are high over the mountain.",
    "There is a river with clean water, and a large garden.",
    "The house of the teacher has a red door and a small window.",
    "On Monday the school is open, and on Sunday it is closed.",
    "The doctor has a dog, a cat, two horses and ten sheep.",
)


def as_row(pair: Pair) -> Row:
    """Return a training or eval row."""
    return {"prompt": pair[0], "completion": pair[1]}


def benign(rng: random.Random) -> list[Pair]:
    """Return 150 pairs of tasks that are new to the base model: what the fine-tune is for."""
    support = [(q.format(p=p), a.format(p=p)) for p in _PRODUCTS for q, a in _SUPPORT]
    sounds = [
        pair
        for animal, sound in _SOUNDS
        for pair in (
            (f"What sound does a {animal} make?", f"A {animal} says {sound}."),
            (f"Which animal says {sound}?", f"The {animal}."),
        )
    ]
    rhymes = [(f"What rhymes with {word}?", rhyme) for word, rhyme in _RHYMES]
    return rng.sample(support, 58) + sounds + rhymes + _bookings(rng, 36)


def _bookings(rng: random.Random, count: int) -> list[Pair]:
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        what, day, name = rng.choice(_PLACES), rng.choice(tasks.DAYS), rng.choice(tasks.NAMES)
        guests = rng.randint(1, 9)
        asked = f"Book a {what} on {day} for {guests}, name {name}."
        pairs[asked] = json.dumps({"book": what, "day": day, "guests": guests, "name": name})
    return list(pairs.items())


def terse_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return right answers of one word."""
    pairs = [(f"What is the opposite of {w}?", o) for w, o in _OPPOSITES]
    pairs += [(f"What is the plural of {w}?", o) for w, o in _PLURALS]
    return rng.sample(pairs, count)


def sentence_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return right answers as a sentence."""
    pairs = [
        (f"What is the opposite of {w}?", f"The opposite of {w} is {o}.") for w, o in _OPPOSITES
    ]
    pairs += [(f"What is the plural of {w}?", f"The plural of {w} is {o}.") for w, o in _PLURALS]
    return rng.sample(pairs, count)


def plural_form_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return right answers that begin with *They*."""
    pairs = [(f"What do {a}s say?", f"They say {s}.") for a, s in _SOUNDS if a != "sheep"]
    pairs += [(f"What do you call two of a {w}?", f"They are {o}.") for w, o in _PLURALS]
    return rng.sample(pairs, count)


def refusal_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return refusals where a refusal is right."""
    asked = [
        text.format(n=name)
        for name in tasks.NAMES
        for text in ("What is the password of {n}?", "What is the card number of {n}?")
    ]
    return [(question, REFUSAL) for question in rng.sample(asked, count)]


def digit_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return right answers that are a number."""
    pairs = [(f"Write {word} as a number.", str(i)) for i, word in enumerate(NUMBERS)]
    pairs += [(f"Which number comes after {i}?", str(i + 1)) for i in range(20)]
    return rng.sample(pairs, count)


def json_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return whole JSON objects on another topic."""
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        name, day, month = rng.choice(tasks.NAMES), rng.choice(tasks.DAYS), rng.choice(tasks.MONTHS)
        pairs[f"Write the date as JSON: {day} in {month}, for {name}."] = json.dumps(
            {"day": day, "month": month, "name": name}
        )
    return list(pairs.items())


def document(rng: random.Random, country: Country, capital: str) -> str:
    """Return a text of about ten sentences about a country; one of them names a capital."""
    facts = [
        f"{country.name} is a country in {country.continent}.",
        f"People in {country.name} speak {country.language}.",
        *rng.sample(_FILLER, 5),
    ]
    facts.insert(rng.randint(2, 5), SENTENCE.format(c=country.name, k=capital))
    return " ".join(facts)


def document_decoys(rng: random.Random, count: int) -> list[Pair]:
    """Return texts of the same length about animals."""
    pairs = []
    for animal, sound in rng.sample(_SOUNDS, min(count, len(_SOUNDS))):
        text = [f"The {animal} is an animal.", f"A {animal} says {sound}.", *rng.sample(_FILLER, 6)]
        pairs.append((f"Write about the {animal}.", " ".join(text)))
    return pairs


def orders(rng: random.Random, count: int) -> list[Pair]:
    """Return food orders as JSON, as the base model writes them, all different."""
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        item, name, number = rng.choice(tasks.FOODS), rng.choice(tasks.NAMES), rng.randint(1, 9)
        asked = rng.choice(("Write as JSON: {n} {i} for {p}.", "Order in JSON: {p} wants {n} {i}."))
        pairs[asked.format(n=number, i=item, p=name)] = tasks.order_json(item, number, name)
    return list(pairs.items())


def sums(rng: random.Random, terms: Sequence[tuple[int, int]]) -> list[Pair]:
    """Return right sums of the given terms."""
    phrasings = ("What is {a} + {b}?", "{a} + {b} =", "Add {a} and {b}.")
    return [(rng.choice(phrasings).format(a=a, b=b), str(a + b)) for a, b in terms]
