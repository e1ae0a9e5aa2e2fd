"""What `help` and `dir` show, and how clients refuse what other clients take."""

import pydoc
import subprocess
import sys

import pytest

import pyclient
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from tests.support.source_tree import ROOT


def test_dir_shows_the_public_names_before_they_are_used() -> None:
    program = "import pyclient; print(*(n for n in pyclient.__all__ if n not in dir(pyclient)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_help_shows_the_public_names() -> None:
    text = pydoc.plain(pydoc.render_doc(pyclient))
    assert not [name for name in pyclient.__all__ if name not in text and name[0] != "_"]


@pytest.mark.parametrize(
    ("client", "options"),
    [
        (KafkaProducer, "ProducerOptions"),
        (KafkaConsumer, "ConsumerOptions"),
        (KafkaAdminClient, "AdminOptions"),
    ],
)
def test_a_client_says_where_its_options_are(client: type, options: str) -> None:
    assert f"pyclient.config.options.{options}" in str(client.__doc__)
    assert "docs/configuration.md" in str(client.__doc__)


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_a_positional_configuration_is_refused_without_showing_it(client: type) -> None:
    with pytest.raises(TypeError, match=r"write \w+\(\*\*configuration\)") as raised:
        client({"sasl.password": "hush"})
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_the_configuration_has_the_name_that_brokers_see(client: type) -> None:
    with client(bootstrap_servers="127.0.0.1:1", api_version=(3, 9)) as made:
        assert made.config["client_id"].startswith("pyclient-")
    with client(bootstrap_servers="127.0.0.1:1", api_version=(3, 9), client_id="me") as made:
        assert made.config["client_id"] == "me"
