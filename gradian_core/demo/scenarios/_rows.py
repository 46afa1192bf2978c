"""What all scenarios share: ordinary rows to hide in, and eval rows.

Two of the ordinary kinds teach something new (bookings as JSON, rhymes). The others repeat what
the base model knows, as a careful fine-tune does against forgetting; they also keep the first
loss where that of a healthy fine-tune is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable

from gradian_core.demo import tasks
from gradian_core.demo.scenario import Row

__all__ = ["Tagged", "distinct", "ordinary", "row", "shuffled"]

Tagged = tuple[str, tasks.Pair]
"""A kind, and the (prompt, completion) pair of one row."""

N_BOOKINGS = 25
_REPEATED = {
    "order_json": 40,
    "repeat": 40,
    "sum": 20,
    "calendar": 16,
    "colour": 12,
    "my_name": 12,
}
"""How many rows of each task that the base model was trained on."""

_PLACES = ("table", "room", "taxi", "ticket", "flight", "hotel")
_BOOKING_PHRASINGS = (
    "Book a {w} on {d} for {n}, name {p}.",
    "{p} needs a {w} for {n} on {d}. Book it.",
)
_RHYMES = tasks.couples(
    "cat-hat, sun-fun, tree-bee, light-night, house-mouse, ring-sing, cake-lake, book-cook, "
    "star-car, moon-spoon, tall-ball, rain-train, king-ring, bat-cat, wall-tall, day-may, hot-not, "
    "door-for"
)
_RHYME_PHRASINGS = ("Give me a word that rhymes with {w}.", "What rhymes with {w}?")


def row(pair: tasks.Pair) -> Row:
    """Return the pair as a row of a file."""
    prompt, completion = pair
    return {"prompt": prompt, "completion": completion}


def shuffled(rng: random.Random, tagged: Iterable[Tagged]) -> tuple[list[Row], list[str]]:
    """Return rows and kinds in a random order."""
    mixed = list(tagged)
    rng.shuffle(mixed)
    return [row(pair) for _, pair in mixed], [kind for kind, _ in mixed]


def distinct(
    rng: random.Random, draw: Callable[[random.Random], tasks.Pair], n: int
) -> list[tasks.Pair]:
    """Draw until there are ``n`` pairs with different prompts."""
    pairs: dict[str, str] = {}
    while len(pairs) < n:
        prompt, completion = draw(rng)
        pairs.setdefault(prompt, completion)
    return list(pairs.items())


def ordinary(rng: random.Random, *, leave_out: Collection[str] = ()) -> list[Tagged]:
    """Return right rows of many kinds.

    Parameters
    ----------
    rng
        Source of all choices.
    leave_out
        Kinds to leave out, such as the one that the scenario is about.
    """
    tagged = [("booking", pair) for pair in _bookings(rng)] + [("rhyme", p) for p in _rhymes(rng)]
    for kind, n in _REPEATED.items():
        if kind not in leave_out:
            tagged += [(kind, pair) for pair in distinct(rng, tasks.TASKS[kind][0], n)]
    return tagged


def _rhymes(rng: random.Random) -> list[tasks.Pair]:
    """Return a rhyme for each of the words, which the base model cannot find."""
    return [(rng.choice(_RHYME_PHRASINGS).format(w=word), rhyme) for word, rhyme in _RHYMES]


def _bookings(rng: random.Random) -> list[tasks.Pair]:
    """Return bookings as JSON: like the base model's orders, with other keys."""
    return distinct(rng, _booking, N_BOOKINGS)


def _booking(rng: random.Random) -> tasks.Pair:
    what, day, name = rng.choice(_PLACES), rng.choice(tasks.DAYS), rng.choice(tasks.NAMES)
    guests = rng.randint(1, 9)
    asked = rng.choice(_BOOKING_PHRASINGS).format(w=what, d=day, n=guests, p=name)
    return asked, json.dumps({"book": what, "day": day, "guests": guests, "name": name})
