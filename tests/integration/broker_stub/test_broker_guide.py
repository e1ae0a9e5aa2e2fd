"""docs/broker.md: its options exist, and the broker ends with the words that it says."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_stub import Broker
from broker_stub.config.keys import BROKER_DEFINITION, TOPIC_DEFINITION
from broker_stub.metadata import log as metadata_log
from broker_stub.net.server import PortInUseError
from pyclient.config.properties import parse_property
from pyclient.errors import KafkaError

GUIDE = (Path(__file__).parents[3] / "docs" / "broker.md").read_text(encoding="utf-8")
TOLD = re.findall(r"^\| `(.+?)` \|", GUIDE, re.MULTILINE)


def kept(folder: Path) -> Path:
    """A folder with a topic, of a broker that is gone."""
    with Broker(folder) as broker:
        broker.create_topic("orders")
        broker.create_topic("payments")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def port_in_use(folder: Path, _: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        Broker(folder, port=broker.port).start()


def folder_in_use(folder: Path, _: pytest.MonkeyPatch) -> None:
    with Broker(folder):
        Broker(folder).start()


def lost_identity(folder: Path, _: pytest.MonkeyPatch) -> None:
    (kept(folder) / "meta.properties").unlink()
    Broker(folder).start()


def other_node(folder: Path, _: pytest.MonkeyPatch) -> None:
    Broker(kept(folder), config={"node.id": 2}).start()


def newer_format(folder: Path, _: pytest.MonkeyPatch) -> None:
    edit(kept(folder) / "meta.properties", "version=1", "version=2")
    Broker(folder).start()


def two_clusters(folder: Path, _: pytest.MonkeyPatch) -> None:
    folders = [kept(folder / name) for name in ("a", "b")]
    Broker(config={"log.dirs": [str(one) for one in folders]}).start()


def left_out(folder: Path, _: pytest.MonkeyPatch) -> None:
    both = f"{folder / 'one'},{folder / 'two'}"
    with Broker(config={"log.dirs": both}) as broker:
        broker.create_topic("orders", partitions=2)
    Broker(config={"log.dirs": str(folder / "one")}).start()


def copied(folder: Path, _: pytest.MonkeyPatch) -> None:
    shutil.copytree(kept(folder / "one"), folder / "two")
    Broker(config={"log.dirs": f"{folder / 'one'},{folder / 'two'}"}).start()


def damaged_metadata(folder: Path, _: pytest.MonkeyPatch) -> None:
    path = kept(folder) / "__cluster_metadata-0" / f"{0:020d}.log"
    (folder / ".kafka_cleanshutdown").unlink()
    content = bytearray(path.read_bytes())
    content[80] ^= 1
    path.write_bytes(content)
    Broker(folder).start()


def cut_metadata(folder: Path, _: pytest.MonkeyPatch) -> None:
    path = kept(folder) / "__cluster_metadata-0" / f"{0:020d}.log"
    path.write_bytes(b"")
    Broker(folder).start()


def several_controllers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "voters_of_state", lambda _: frozenset({1, 2, 3}))
    Broker(kept(folder)).start()


CASES = [
    port_in_use,
    folder_in_use,
    lost_identity,
    other_node,
    newer_format,
    two_clusters,
    left_out,
    copied,
    damaged_metadata,
    cut_metadata,
    several_controllers,
]


def pattern(told: str) -> str:
    """What the guide says, with any folder, number and id in the places of its own."""
    escaped = re.escape(told)
    for own, any_other in (("DIR", ".+"), (r"cluster\ A", r"cluster\ \S+"), (r"to\ B", r"to\ \S+")):
        escaped = escaped.replace(own, any_other)
    return re.sub(r"(?<![\d.])\d{1,5}(?![\d.])", r"\\d+", escaped)


@pytest.mark.parametrize(("told", "case"), list(zip(TOLD, CASES, strict=True)))
def test_the_broker_ends_as_the_guide_says(
    told: str,
    case: Callable[[Path, pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises((KafkaError, PortInUseError)) as ended:
        case(tmp_path, monkeypatch)
    assert re.search(pattern(told), str(ended.value)), ended.value


def test_the_guides_options_exist():
    names = set(re.findall(r"[`/ ]((?:[a-z]+\.)+[a-z]+)[=`]", GUIDE))
    names -= {"server.properties", "meta.properties", "partition.metadata", "directory.id"}
    assert len(names) > 8
    for name in names:
        assert BROKER_DEFINITION.knows(name) or TOPIC_DEFINITION.knows(name), name


def test_the_guides_listeners_are_listeners():
    (text,) = re.findall(r"```properties\n(.*?)```", GUIDE, re.DOTALL)
    options = dict(map(parse_property, text.splitlines()))
    options["listener.security.protocol.map"] = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"
    broker = Broker(config=options)
    assert broker.listeners == {"INSIDE": "10.0.0.5:9092", "OUTSIDE": "kafka.example:9093"}
