"""Declares two checks. Nothing heavy is imported here: this runs for every listing."""

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Give the checks."""
    yield CheckSpec(
        name="house.emails_in_answers",
        summary="Email addresses in answers",
        factory="gradian_check_example.emails_in_answers:emails_in_answers",
        needs=("examples",),
        since="1.0.0",
    )
    yield CheckSpec(
        name="house.too_many_epochs",
        summary="More epochs than we allow",
        factory="gradian_check_example.too_many_epochs:too_many_epochs",
        needs=("training",),
        since="1.0.0",
    )
