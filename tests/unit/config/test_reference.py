"""The reference page is written from the rows, so it cannot fall behind them."""

from pathlib import Path

from pyclient.config import consumer, producer, reference

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_in_the_repository_is_the_one_that_the_rows_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.page(), "run `make docs`"


def test_every_option_is_on_the_page() -> None:
    page = reference.page()
    for definition in (producer.DEFINITION, consumer.DEFINITION):
        assert all(f"| `{name}`" in page for name in definition.keys)
        assert all(f"`{name}`" in page for name in definition.refused)
