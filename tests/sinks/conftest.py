import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def samples():
    path = Path(__file__).parents[1] / "report" / "report_samples.py"
    return SimpleNamespace(**runpy.run_path(str(path)))
