"""The examples of docs/testing.md are tests: they pass."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_guides_examples_pass(tmp_path):
    guide = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "test_guide.py").write_text("\n\n".join(examples))
    plugin = ("-p", "no:cacheprovider", "-p", "broker_stub.testing.pytest_plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin],
        cwd=tmp_path,
        # Other plugins take longer to import than the tests to run.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{len(examples)} passed" in done.stdout, done.stdout + done.stderr
