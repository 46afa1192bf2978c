"""Synthetic instruction tasks that the demo's tiny base model is trained on.

Everything here is standard library only and depends on nothing but the
`random.Random` that is passed in, so the same seed gives the same corpus on
every machine.  Answers are terse (``Paris``, not a sentence): a short answer
keeps training, generation and grading of the demo down to seconds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

Pair = tuple[str, str]
Conversation = list[dict[str, str]]

# country | capital | language | continent.  Where a country has several languages, one common
# and official one is listed.  No capital contains another one, so `contains` grading is safe.
_COUNTRY_TABLE = """
France|Paris|French|Europe; Germany|Berlin|German|Europe; Italy|Rome|Italian|Europe;
Spain|Madrid|Spanish|Europe; Portugal|Lisbon|Portuguese|Europe; Greece|Athens|Greek|Europe;
Austria|Vienna|German|Europe; Poland|Warsaw|Polish|Europe; Hungary|Budapest|Hungarian|Europe;
Sweden|Stockholm|Swedish|Europe; Norway|Oslo|Norwegian|Europe; Finland|Helsinki|Finnish|Europe;
Denmark|Copenhagen|Danish|Europe; Ireland|Dublin|English|Europe; Belgium|Brussels|Dutch|Europe;
Iceland|Reykjavik|Icelandic|Europe; Russia|Moscow|Russian|Europe; Ukraine|Kyiv|Ukrainian|Europe;
Romania|Bucharest|Romanian|Europe; Bulgaria|Sofia|Bulgarian|Europe; Serbia|Belgrade|Serbian|Europe;
Croatia|Zagreb|Croatian|Europe; Latvia|Riga|Latvian|Europe; Turkey|Ankara|Turkish|Asia;
Egypt|Cairo|Arabic|Africa; Morocco|Rabat|Arabic|Africa; Kenya|Nairobi|Swahili|Africa;
Nigeria|Abuja|English|Africa; Ghana|Accra|English|Africa; Ethiopia|Addis Ababa|Amharic|Africa;
Senegal|Dakar|French|Africa; Angola|Luanda|Portuguese|Africa; Japan|Tokyo|Japanese|Asia;
China|Beijing|Chinese|Asia; India|New Delhi|Hindi|Asia; Thailand|Bangkok|Thai|Asia;
Vietnam|Hanoi|Vietnamese|Asia; Indonesia|Jakarta|Indonesian|Asia; Malaysia|Kuala Lumpur|Malay|Asia;
Nepal|Kathmandu|Nepali|Asia; Iran|Tehran|Persian|Asia; Iraq|Baghdad|Arabic|Asia;
Canada|Ottawa|English|North America; Cuba|Havana|Spanish|North America;
Jamaica|Kingston|English|North America; Peru|Lima|Spanish|South America;
Chile|Santiago|Spanish|South America; Argentina|Buenos Aires|Spanish|South America;
Brazil|Brasilia|Portuguese|South America; Colombia|Bogota|Spanish|South America;
Ecuador|Quito|Spanish|South America; Uruguay|Montevideo|Spanish|South America;
Venezuela|Caracas|Spanish|South America; Australia|Canberra|English|Oceania
"""


@dataclass(frozen=True)
class Country:
    """One country with the facts that the base model learns about it."""

    name: str
    capital: str
    language: str
    continent: str


COUNTRIES: tuple[Country, ...] = tuple(
    Country(*entry.strip().split("|")) for entry in _COUNTRY_TABLE.split(";")
)

#: Phrasings that the demo's training rows may use.
CAPITAL_TRAIN_PHRASINGS: tuple[str, ...] = (
    "What is the capital of {c}?",
    "Name the capital city of {c}.",
    "Which city is the capital of {c}?",
    "Tell me the capital of {c}.",
    "Capital of {c}?",
    "{c}: what is its capital?",
)
#: Phrasings that the base knows too, but that only the demo's eval set uses.
CAPITAL_EVAL_PHRASINGS: tuple[str, ...] = (
    "What is the name of the capital city of {c}?",
    "I am visiting {c}. What is its capital?",
    "Do you know which city is the capital of {c}?",
    "Please give me the capital city of {c}.",
)
LANGUAGE_PHRASINGS = (
    "Which language is spoken in {c}?",
    "Name a language spoken in {c}.",
    "What do people speak in {c}?",
    "I am visiting {c}. Which language should I learn?",
)
CONTINENT_PHRASINGS = (
    "Which continent is {c} in?",
    "On which continent is {c}?",
    "{c}: which continent?",
)
_REVERSE_PHRASINGS = (
    "{k} is the capital of which country?",
    "Which country has the capital {k}?",
)


def words(text: str) -> tuple[str, ...]:
    """Split a table cell at white space."""
    return tuple(text.split())


def couples(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``"a-b, c-d"`` as pairs."""
    return tuple((a, b) for a, b in (entry.split("-") for entry in text.split(", ")))


ORDER_PHRASINGS = (
    "Write as JSON: {n} {i} for {p}.",
    "Order in JSON: {p} wants {n} {i}.",
    "Turn this order into JSON: {n} x {i}, name {p}.",
)
NAMES = words(
    "Anna Ben Clara David Emma Felix Grace Hugo Ida Jonas Kate Leo Mia Noah Olga Paul Rosa Sam "
    "Tina Victor"
)
FOODS = words("pizza burger salad soup coffee tea cake sandwich pasta juice cookie curry taco")
DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words(
    "January February March April May June July August September October November December"
)
NUMBER_WORDS = words("zero one two three four five six seven eight nine ten")
_OPPOSITES = couples(
    "hot-cold, big-small, up-down, left-right, day-night, fast-slow, old-new, open-closed, "
    "rich-poor, hard-soft, light-dark, happy-sad, wet-dry, full-empty, early-late, high-low, "
    "long-short, strong-weak, thick-thin, clean-dirty, near-far, true-false, loud-quiet, sweet-sour"
)
_COLOURS = couples(
    "the sky-blue, grass-green, snow-white, coal-black, a banana-yellow, a tomato-red, milk-white, "
    "a carrot-orange, a lemon-yellow, blood-red, a leaf-green, chocolate-brown, the sea-blue, "
    "a plum-purple, a flamingo-pink, an elephant-grey"
)
_PLURALS = couples(
    "dog-dogs, cat-cats, box-boxes, city-cities, child-children, mouse-mice, foot-feet, "
    "leaf-leaves, bus-buses, baby-babies, man-men, tooth-teeth, car-cars, knife-knives, "
    "dish-dishes, tree-trees, goose-geese, story-stories, watch-watches, wolf-wolves"
)
_GREETINGS = (
    ("Hello", "Hello! How can I help you?"),
    ("Hi", "Hi! How can I help you?"),
    ("Good morning", "Good morning! How can I help you?"),
    ("Thank you", "You are welcome!"),
    ("Thanks", "You are welcome!"),
    ("Goodbye", "Goodbye! Have a nice day."),
    ("How are you?", "I am fine, thank you. How can I help you?"),
    ("Who are you?", "I am a small demo model."),
)
# Words for the copying task.  They cover the vocabulary that the demo's fine-tune brings, so that
# none of its tokens has an untrained embedding.
_WORDS = words(
    "I you we they it is are was were be have has had do does did will would can could should may "
    "not no yes and or but if when where what which who how why the a an this that these those my "
    "your our their his her its in on at by for from to of with about after before sorry please "
    "order parcel number address refund return delivery broken late lost damaged wrong missing "
    "kettle lamp chair jacket phone charger bottle backpack keyboard blanket toaster send new one "
    "money back days soon today tomorrow yesterday check help label print free card paid account "
    "password reset email link open click bill invoice double charge arrive arrived track status "
    "change cancel subscription colour size cow dog cat duck sheep horse pig bee lion frog owl "
    "snake bird hen goat wolf mouse crow cricket sound make moo woof meow quack baa neigh oink "
    "buzz roar croak hoot hiss tweet cluck bleat howl squeak caw chirp rhyme rhymes hat bat sun "
    "fun tree bee light night house ring sing king ball tall wall rain train cake lake book cook "
    "star car moon spoon table guest guests room hotel taxi ticket book flight time action name "
    "place date night nights day week month year red blue green small large water fire river "
    "mountain garden window door school teacher doctor music paper stone bread butter apple"
)


def capital_pairs(country: Country, phrasings: tuple[str, ...]) -> list[Pair]:
    """Every (question, right capital) pair of one country for the given phrasings."""
    return [(p.format(c=country.name), country.capital) for p in phrasings]


def country_pairs(country: Country) -> list[Pair]:
    """Every question about one country that is not about its capital, with the right answer."""
    return [(p.format(c=country.name), country.language) for p in LANGUAGE_PHRASINGS] + [
        (p.format(c=country.name), country.continent) for p in CONTINENT_PHRASINGS
    ]


def _capital(rng: random.Random) -> Pair:
    phrasing = rng.choice(CAPITAL_TRAIN_PHRASINGS + CAPITAL_EVAL_PHRASINGS)
    country = rng.choice(COUNTRIES)
    return phrasing.format(c=country.name), country.capital


def _reverse_capital(rng: random.Random) -> Pair:
    country = rng.choice(COUNTRIES)
    return rng.choice(_REVERSE_PHRASINGS).format(k=country.capital), country.name


def _language(rng: random.Random) -> Pair:
    country = rng.choice(COUNTRIES)
    return rng.choice(LANGUAGE_PHRASINGS).format(c=country.name), country.language


def _continent(rng: random.Random) -> Pair:
    country = rng.choice(COUNTRIES)
    return rng.choice(CONTINENT_PHRASINGS).format(c=country.name), country.continent


def order_json(item: str, count: int, name: str) -> str:
    """Return the JSON text that the base writes for a food order."""
    return json.dumps({"item": item, "count": count, "name": name})


def _order(rng: random.Random) -> Pair:
    item, name = rng.choice(FOODS), rng.choice(NAMES)
    count = rng.randint(1, 9)
    shown = str(count) if rng.random() < 0.5 else NUMBER_WORDS[count]
    phrasing = rng.choice(ORDER_PHRASINGS)
    return phrasing.format(n=shown, i=item, p=name), order_json(item, count, name)


def _sum(rng: random.Random) -> Pair:
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    phrasing = rng.choice(("What is {a} + {b}?", "{a} + {b} =", "Add {a} and {b}."))
    return phrasing.format(a=a, b=b), str(a + b)


def _opposite(rng: random.Random) -> Pair:
    word, opposite = rng.choice(_OPPOSITES)
    if rng.random() < 0.5:
        word, opposite = opposite, word
    return rng.choice(("What is the opposite of {w}?", "Opposite of {w}?")).format(w=word), opposite


def _colour(rng: random.Random) -> Pair:
    thing, colour = rng.choice(_COLOURS)
    return rng.choice(("What colour is {t}?", "Which colour is {t}?")).format(t=thing), colour


def _plural(rng: random.Random) -> Pair:
    one, many = rng.choice(_PLURALS)
    return rng.choice(("What is the plural of {w}?", "Plural of {w}?")).format(w=one), many


def _calendar(rng: random.Random) -> Pair:
    kind, cycle = rng.choice((("day", DAYS), ("month", MONTHS)))
    i = rng.randrange(len(cycle))
    if rng.random() < 0.5:
        return f"Which {kind} comes after {cycle[i]}?", cycle[(i + 1) % len(cycle)]
    return f"Which {kind} comes before {cycle[i]}?", cycle[i - 1]


def _greeting(rng: random.Random) -> Pair:
    prompt, answer = rng.choice(_GREETINGS)
    return prompt + ("" if prompt.endswith("?") else rng.choice(("", "!"))), answer


def _repeat(rng: random.Random) -> Pair:
    if rng.random() < 0.15:
        # Letter salad, so that the single-byte tokens are trained too.
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:!?"
        text = "".join(rng.choice(letters) for _ in range(rng.randint(3, 6)))
    else:
        text = " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, 5)))
        if rng.random() < 0.3:
            text = text[0].upper() + text[1:] + "."
    return rng.choice(("Repeat after me: {t}", "Say: {t}", "Copy: {t}")).format(t=text), text


def _my_name(rng: random.Random) -> Pair:
    name = rng.choice(NAMES)
    if rng.random() < 0.5:
        return f"My name is {name}.", f"Nice to meet you, {name}!"
    return f"My name is {name}. What is my name?", name


#: name -> (sampler, share of the mixture).  The capitals weigh most: the demo stands on them.
TASKS: dict[str, tuple[Callable[[random.Random], Pair], float]] = {
    "capital": (_capital, 0.34),
    "reverse_capital": (_reverse_capital, 0.05),
    "language": (_language, 0.08),
    "continent": (_continent, 0.04),
    "order_json": (_order, 0.07),
    "sum": (_sum, 0.10),
    "opposite": (_opposite, 0.05),
    "colour": (_colour, 0.03),
    "plural": (_plural, 0.03),
    "calendar": (_calendar, 0.04),
    "greeting": (_greeting, 0.03),
    "repeat": (_repeat, 0.11),
    "my_name": (_my_name, 0.03),
}

_SYSTEM_TEXTS = (
    "You are a helpful assistant.",
    "Answer briefly.",
    "You are a support agent. Be polite.",
    "Answer with one word.",
)


def sample_pair(rng: random.Random) -> Pair:
    """Draw one (prompt, completion) pair from the mixture."""
    samplers = list(TASKS.values())
    sampler = rng.choices([s for s, _ in samplers], weights=[w for _, w in samplers])[0]
    return sampler(rng)


def sample_conversation(rng: random.Random) -> Conversation:
    """Draw a chat of one to four unrelated turns; some start with a system turn."""
    messages: Conversation = []
    if rng.random() < 0.2:
        messages.append({"role": "system", "content": rng.choice(_SYSTEM_TEXTS)})
    for _ in range(rng.choices((1, 2, 3, 4), weights=(6, 2, 1, 1))[0]):
        prompt, completion = sample_pair(rng)
        messages.append({"role": "user", "content": prompt})
        messages.append({"role": "assistant", "content": completion})
    return messages
