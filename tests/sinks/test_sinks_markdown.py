from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gradian_plugins.sinks._markdown import _prose, markdown

GOLDEN = Path(__file__).with_name("golden_report.md")


def parse(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def flat_types(tokens):
    for token in tokens:
        yield token.type
        yield from flat_types(token.children or ())


def headings(text):
    tokens = parse(text)
    return [
        (token.tag, tokens[i + 1].content)
        for i, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def test_golden_byte_by_byte(samples):
    assert markdown(samples.poisoned()).encode() == GOLDEN.read_bytes()


def test_order_of_sections(samples):
    titles = [title for tag, title in headings(markdown(samples.poisoned())) if tag == "h2"]
    assert titles == [
        "Capability",
        "Clusters",
        "Most harmful examples",
        "Most helpful examples",
        "Findings",
        "Not done",
        "Notes",
        "Provenance",
    ]


def test_audit_has_neither_clusters_nor_examples(samples):
    text = markdown(samples.poisoned(capability=None, attribution=None, notes=(), not_done=()))
    assert headings(text)[0] == ("h1", "Gradian report: audit")
    titles = [title for tag, title in headings(text) if tag == "h2"]
    assert titles == ["Findings", "Not done", "Provenance"]
    assert "Nothing was left out." in text
    assert "None." in markdown(samples.poisoned(findings=()))


def test_hostile_text_stays_text(samples):
    text = markdown(samples.hostile())
    tokens = parse(text)
    types = set(flat_types(tokens))
    assert not types & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "fence",
        "code_block",
        "hr",
        "ordered_list_open",
        "s_open",
        "em_open",
        "blockquote_open",
    }
    assert text.isprintable() or all(
        ch == "\n" or ch.isprintable() or ch == "\u2060" for ch in text
    )

    # every row of a table has the columns of its head
    for i, token in enumerate(tokens):
        if token.type == "table_open":
            width = sum(t.type == "th_open" for t in tokens[i : i + 40])
        elif token.type == "tr_open":
            row = tokens[i : next(j for j in range(i, len(tokens)) if tokens[j].type == "tr_close")]
            assert sum(t.type in {"th_open", "td_open"} for t in row) == width

    # as many sections as without hostile text
    n = len(samples.HOSTILE)
    shown = [title for tag, title in headings(text) if tag == "h3"]
    assert len([title for title in shown if title.startswith("high:")]) == n
    assert [title for tag, title in headings(text) if tag == "h2"] == [
        "Capability",
        "Clusters",
        "Most harmful examples",
        "Most helpful examples",
        "Findings",
        "Not done",
        "Notes",
        "Provenance",
    ]


def test_stays_small_enough_for_a_pull_request_comment(samples):
    assert len(markdown(samples.hostile())) < 60_000


def test_many_clusters_items_and_ids_are_counted_not_listed(samples):
    examples = [samples.example(i, f"q{i}", "a") for i in range(50)]
    lane = samples.attribution(
        examples,
        [-1.0] * 50,
        labels=range(50),
        skipped=dict.fromkeys(range(25), "no supervised token"),
    )
    finding = samples.Finding(
        id="data.x",
        severity=samples.Severity.LOW,
        title="x",
        example_ids=tuple(e.id for e in examples),
    )
    items = samples.capability().items * 4
    text = markdown(
        samples.poisoned(
            examples=examples,
            attribution=lane,
            findings=[finding],
            capability=samples.capability(items=items),
        )
    )
    assert "30 more clusters in report.json." in text
    assert "12 more items in report.json." in text
    assert "5 more skipped rows in report.json." in text
    assert "and 45 more in report.json." in text


def test_likelihood_items_show_scores(samples):
    from dataclasses import replace

    items = tuple(
        replace(item, base_output=None, tuned_output=None) for item in samples.capability().items
    )
    text = markdown(samples.poisoned(capability=samples.capability(items=items)))
    assert "| 7 | `What is the capital of country 7?` | `City 7` | 1 | 0 | +3 |" in text


@pytest.mark.parametrize(
    "text",
    ["# x", "1. x", "12) x", "- x", "+ x", "=== x", "---", "* x", "> x", "    x", "```", "."],
)
def test_prose_opens_no_block(text):
    assert [token.type for token in parse(_prose(text))][:1] == ["paragraph_open"]


@given(st.text(max_size=60))
def test_prose_shows_exactly_the_text(text):
    from gradian_core.text import excerpt

    tokens = parse(_prose(text))
    if not excerpt(text, 1000):
        assert tokens == []
        return
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children
    assert {child.type for child in children} <= {"text", "text_special"}
    shown = "".join(child.content for child in children).replace("\u2060", "")
    assert shown.split() == excerpt(text, 1000).replace("\u2060", "").split()


def test_predictions_beside_other_aggregations_are_explained(samples):
    report = samples.poisoned()
    assert "net effect" not in markdown(report)
    query = report.query.model_copy(update={"aggregation": "max"})
    changed = report.model_copy(update={"query": query})
    text = markdown(changed)
    assert "by aggregation max" in text
    assert "from the net effect" in text
