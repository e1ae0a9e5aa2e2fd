"""The text and the examples of docs/admin.md."""

import re
from pathlib import Path

GUIDE = (Path(__file__).parents[2] / "docs" / "admin.md").read_text(encoding="utf-8")


def run_example(title: str, servers: str) -> None:
    """Run the example under a heading as it stands, but for the address."""
    section = GUIDE.split(f"# {title}\n")[1].split("\n#")[0]
    (source,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(source.replace("localhost:9092", servers), {})
