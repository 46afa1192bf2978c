"""The public surface of the plugin API is written down, and changes only in sight."""

from pathlib import Path

from gradian_core.testing.contract import MODULES, contract_text

GOLDEN = Path(__file__).parents[2] / "docs" / "contract.txt"


def test_the_contract_is_the_one_written_down():
    assert contract_text() == GOLDEN.read_text(encoding="utf-8"), (
        "The public surface changed. Within gradian.v1 only additions are allowed; if this is "
        "one, run: python -m gradian_core.testing.contract"
    )


def test_the_examples_import_nothing_else():
    import re

    root = GOLDEN.parents[1]
    for path in [*root.glob("examples/*/*/*.py"), *root.glob("gradian_core/scaffold/**/*.py.tmpl")]:
        found = re.findall(r"^(?:from|import) (gradian_core[\w.]*)", path.read_text(), re.MULTILINE)
        assert set(found) <= set(MODULES), path


def test_a_change_is_seen(monkeypatch):
    from gradian_core import specs

    monkeypatch.setattr(specs, "__all__", [*specs.__all__, "dataclass"])
    assert contract_text() != GOLDEN.read_text(encoding="utf-8")
