"""The integer types of Kafka's options: 16, 32 and 64 bits."""

from typing import Any, Final

from pyclient.config.definition import ConfigType, config_type


def _integer(bits: int) -> ConfigType:
    end = 1 << bits - 1

    def convert(value: Any) -> int:
        number = config_type(int).convert(value)
        if not -end <= number < end:
            raise ValueError(value)
        return int(number)

    return ConfigType(f"an integer of {bits} bits", convert)


SHORT: Final = _integer(16)
INT: Final = _integer(32)
LONG: Final = _integer(64)
