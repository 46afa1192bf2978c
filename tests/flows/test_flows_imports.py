"""What core never imports, however indirectly: packages that patch models as they come."""

from __future__ import annotations

import subprocess
import sys

PATCHING = ("trl", "unsloth", "bitsandbytes", "xformers")

EVERY_MODULE = """
import importlib, pkgutil, sys
import gradian_core
for module in pkgutil.walk_packages(gradian_core.__path__, "gradian_core."):
    # the kit's pytest plugin needs pytest running, and __main__ runs the command
    if not module.name.endswith((".pytest_plugin", "__main__")):
        importlib.import_module(module.name)
print(",".join(name for name in sys.argv[1:] if name in sys.modules))
print(len([name for name in sys.modules if name.startswith("gradian_core.")]))
"""


def test_no_module_of_core_imports_what_patches_models():
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE, *PATCHING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, count = done.stdout.splitlines()[-2:]
    assert found == ""
    assert int(count) > 150
