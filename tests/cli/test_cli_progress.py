"""Progress: on stderr, never in the way."""

import io

import pytest

from gradian_core.progress import (
    INTERVAL,
    BarProgress,
    LineProgress,
    NoProgress,
    make_progress,
)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Closed(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


def test_lines_are_rare():
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock)
    with progress.task("Gradients", 1000) as task:
        for _ in range(1000):
            clock.now += 0.125
            task.advance()
    assert stream.getvalue().splitlines() == [
        "Gradients: started, 1,000 to do",
        "Gradients: 240 of 1,000 (24%), 30 s, about 1 min 35 s left",
        "Gradients: 480 of 1,000 (48%), 1 min 0 s, about 1 min 5 s left",
        "Gradients: 720 of 1,000 (72%), 1 min 30 s, about 35 s left",
        "Gradients: 960 of 1,000 (96%), 2 min 0 s, about 5 s left",
        "Gradients: done in 2 min 5 s",
    ]


def test_a_task_of_unknown_length():
    stream, clock = io.StringIO(), Clock()
    with LineProgress(stream, clock).task("Loading") as task:
        clock.now += 2 * INTERVAL
        task.advance(5)
        clock.now += 2 * 3600
    assert stream.getvalue().splitlines() == [
        "Loading: started",
        "Loading: 5, 1 min 0 s",
        "Loading: done in 2 h 1 min",
    ]


def test_a_failed_task_is_not_called_done():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="x"), LineProgress(stream).task("Work"):
        raise ValueError("x")
    assert "done" not in stream.getvalue()


def test_messages_are_safe():
    for progress_of in (LineProgress, BarProgress):
        stream = io.StringIO()
        progress_of(stream).message("resuming [red]\x1b]0;x\x07\nforged")
        assert stream.getvalue() == "resuming [red] forged\n"


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "EIO"), ValueError("closed")])
@pytest.mark.parametrize("progress_of", [LineProgress, BarProgress])
def test_a_closed_stream_stops_nothing(progress_of, error):
    progress = progress_of(Closed(error))
    progress.message("x")
    with progress.task("a", 2) as task:
        task.advance()


def test_bars_can_be_nested_and_show_brackets():
    stream = Terminal()
    progress = make_progress(stream=stream)
    assert isinstance(progress, BarProgress)
    with progress.task("outer [/red]", 2) as outer:
        with progress.task("inner", None) as inner:
            inner.advance()
        outer.advance(2)
    assert "outer [/red]" in stream.getvalue()
    assert "2/2" in stream.getvalue()
    with progress.task("again", 1) as task:
        task.advance()
    assert "again" in stream.getvalue()


def test_what_is_chosen(capsys):
    assert isinstance(make_progress(quiet=True, stream=Terminal()), NoProgress)
    assert isinstance(make_progress(stream=io.StringIO()), LineProgress)
    with make_progress().task("x", 1) as task:
        task.advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "x: done" in captured.err


def test_silence():
    progress = NoProgress()
    progress.message("x")
    with progress.task("x", 1) as task:
        task.advance(3)


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert isinstance(make_progress(), NoProgress)
