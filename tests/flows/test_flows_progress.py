"""What a log of the work looks like."""

import io

from gradian_core.flows.session import counted
from gradian_core.progress import LineProgress


def test_tasks_that_follow_each_other_end_in_order_of_time():
    stream = io.StringIO()
    progress = LineProgress(stream)
    with counted(progress, "First") as first, counted(progress, "Second") as second:
        for done in (1, 2):
            first(done, 2)
        for done in (1, 2):
            second(done, 2)
    lines = [line.split(" in ")[0].split(",")[0] for line in stream.getvalue().splitlines()]
    assert lines == ["First: started", "First: done", "Second: started", "Second: done"]
