import io

import pytest
from rich.console import Console

from gradian_core.report.terminal import print_report

WIDTHS = [20, 40, 80, 99, 100, 120, 240]


def shown(report, width=120, *, color=False, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(
        file=file, width=width, force_terminal=color, color_system="truecolor" if color else None
    )
    print_report(report, console)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["poisoned", "flat", "hostile"])
def test_fits_and_is_inert(samples, width, kind):
    text = shown(getattr(samples, kind)(), width)
    for line in text.split("\n"):
        assert len(line) <= width
        # a runner would take such a line for a command
        assert not line.lstrip().startswith("::")
    assert all(ch == "\n" or ch.isprintable() for ch in text)


def test_markup_in_data_is_shown_and_not_obeyed(samples):
    text = shown(samples.hostile(), 240)
    assert "[bold red]markup[/red] [/] [link=file:///etc/passwd]x[/link]" in text


def test_no_escape_from_data_among_the_colours(samples):
    text = shown(samples.hostile(), 120, color=True)
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text
    assert "\x07" not in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("width", [50, 120])
def test_terminals_without_unicode(samples, encoding, width):
    text = shown(samples.hostile(), width, encoding=encoding)
    assert "lone" in text


@pytest.mark.parametrize("width", [60, 140])
def test_says_what_matters(samples, width):
    text = " ".join(shown(samples.poisoned(), width).replace("│", " ").split())
    for part in (
        "capitals regressed",
        "97.5%",
        "[-0.7500, -0.2500]",
        "af08af5d5ff6-0",
        "What is the capital of France, 0?",
        "high data.duplicates",
        "Fix: Keep one of them.",
        "check config.lr_too_high: needs --run",
        "1 training row skipped",
        "The model ran in float32",
        "Most harmful examples, 5 of 6 listed",
    ):
        assert part in text


def test_narrow_lists_every_column(samples):
    text = shown(samples.poisoned(), 60)
    for heading in ("metric:", "95% CI:", "share of negative:", "if removed:", "answer:"):
        assert heading in text


def test_more_clusters_than_fit(samples):
    examples = [samples.example(i, f"q{i}", "a") for i in range(12)]
    lane = samples.attribution(examples, [-1.0] * 12, labels=range(12))
    assert "2 more clusters in report.json" in shown(
        samples.poisoned(examples=examples, attribution=lane)
    )


def test_audit_only(samples):
    text = shown(samples.poisoned(capability=None, attribution=None, not_done=(), notes=()))
    assert "The audit found 2 faults" in text
    assert "Clusters" not in text
    assert "Not done" not in text


@pytest.mark.parametrize("command", ["##[error]owned", "##vso[task.setvariable variable=a]b"])
def test_no_command_of_a_runner_within_a_line(samples, command):
    report = samples.poisoned().model_copy(update={"headline": command})
    text = shown(report, 120)
    assert "[error]owned" in text or "[task" in text
    assert "##" not in text
