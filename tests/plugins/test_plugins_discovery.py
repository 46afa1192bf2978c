"""What is found, in which order, and what is refused before it is imported."""

import sys

import pytest

from gradian_core.plugins.discovery import discover
from gradian_core.plugins.registry import load_registry


def test_nothing_is_imported(site):
    module = site.engine("a", dist="one")
    (candidate,) = discover()
    assert module not in sys.modules
    assert (candidate.name, candidate.distribution, candidate.module) == ("thing", "one", module)


def test_order_is_built_in_first_then_by_distribution(site):
    for dist in ("zeta", "gradian-ml", "Alpha"):
        site.engine(f"e-{dist.lower()}", dist=dist)
    assert [c.distribution for c in discover()] == ["gradian-ml", "Alpha", "zeta"]
    assert list(load_registry().engines) == ["e-alpha", "e-gradian-ml", "e-zeta"]


def test_other_api_versions_are_incompatible(site):
    site.distribution("future", "[gradian.v2]\nnew = nowhere\n")
    site.engine("a", dist="today")
    records = {record.name: record for record in load_registry().plugins}
    assert records["new"].state == "incompatible"
    assert "gradian.v2" in records["new"].reason
    assert "gradian.v1" in records["new"].reason
    assert records["thing"].state == "ok"


def test_a_plugin_for_several_apis_is_listed_once(site):
    module = site.engine("a", dist="both")
    info = site.folder / "both-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text() + f"\n[gradian.v2]\nthing = {module}\n")
    assert [record.state for record in load_registry().plugins] == ["ok"]


@pytest.mark.parametrize("group", ["gradian", "gradian.version", "gradian_v1", "gradian.v1.x"])
def test_other_groups_are_no_plugins(site, group):
    site.distribution("other", f"[{group}]\nx = nowhere\n")
    assert discover() == ()


@pytest.mark.parametrize("name", ["Upper", "sp ace", "a\x1b[31mb", "é", "x" * 200, "a/b"])
def test_hostile_entry_point_names(site, name):
    module = site.module("")
    site.distribution("hostile", f"[gradian.v1]\n{name} = {module}\n")
    site.engine("a", dist="healthy")
    by_distribution = {record.distribution: record for record in load_registry().plugins}
    assert by_distribution["hostile"].state == "failed"
    assert "may only hold" in by_distribution["hostile"].reason
    assert by_distribution["hostile"].name.isprintable()
    assert by_distribution["healthy"].state == "ok"
    assert module not in sys.modules


@pytest.mark.parametrize(
    "entry_points",
    [b"\xff\xfe[gradian.v1]\nx = y\n", b"[gradian.v1]\nx = \n", b"[gradian.v1]\nx = 1/2\n"],
    ids=["not text", "no module", "no module name"],
)
def test_damaged_entry_points(site, entry_points):
    site.distribution("damaged", entry_points)
    site.engine("a", dist="healthy")
    registry = load_registry()
    assert "a" in registry.engines
    assert [r.state for r in registry.plugins if r.distribution == "damaged"] == ["failed"]


def test_unreadable_metadata_is_reported(site):
    site.engine("a", dist="healthy")
    broken = "Metadata-Version: 2.1\nSummary: nameless\n"
    site.distribution("nameless", "[gradian.v1]\nx = nowhere\n", metadata=broken)
    by_name = {record.name: record for record in load_registry().plugins}
    assert by_name["x"].state == "failed"
    assert by_name["x"].distribution == "unknown"
    assert by_name["thing"].state == "ok"


def test_same_line_twice_is_one_plugin(site):
    module = site.engine("a", dist="double")
    info = site.folder / "double-1.0.dist-info" / "entry_points.txt"
    info.write_text(f"[gradian.v1]\nthing = {module}\nthing = {module}\n")
    assert [record.state for record in load_registry().plugins] == ["ok"]


def test_same_name_for_two_modules_fails(site):
    one, two = site.module(""), site.module("")
    site.distribution("double", f"[gradian.v1]\nthing = {one}\nthing = {two}\n")
    records = load_registry().plugins
    assert [record.state for record in records] == ["failed", "failed"]
    assert all("twice" in record.reason for record in records)


def test_a_distribution_that_is_on_the_path_twice_counts_once(site):
    module = site.engine("a", dist="twice")
    site.distribution("twice", f"[gradian.v1]\nthing = {module}\n", version="2.0")
    records = load_registry().plugins
    assert [record.state for record in records] == ["ok"]
