"""The examples of the README, as code."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def example(heading: str, bootstrap_servers: str) -> str:
    """The first Python block below a heading, pointed at another broker."""
    section = README.read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert blocks, f"no example below {heading!r}"
    code: str = blocks[0]
    return code.replace("localhost:9092", bootstrap_servers)
