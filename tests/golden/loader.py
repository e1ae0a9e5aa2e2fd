"""Where the golden files are, and how to read them.

`GOLDEN_DIR=/absolute/folder pytest tests/golden` runs the golden tests on another folder of the
same file names. What is missing is an error: a golden test never skips.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any


def golden_path(name: str) -> Path:
    """The golden file of that name."""
    folder = Path(os.environ.get("GOLDEN_DIR") or Path(__file__).parent)
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(f"golden file {path} is missing")
    return path


def golden_lines(name: str) -> list[dict[str, Any]]:
    """The lines of a `.jsonl.gz` file; it has to have some."""
    with gzip.open(golden_path(name), "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    if not lines:
        raise ValueError(f"golden file {name} is empty")
    return lines
