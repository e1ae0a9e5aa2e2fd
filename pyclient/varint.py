"""Variable-length integers: seven bits a byte, lowest first; signed ones are zig-zag encoded.

Protocol fields use unsigned ones, record fields signed ones. No state; any thread. Three loops
spell out the one-byte and two-byte cases themselves, because a call costs more than the rest: the
compiled message decoder (`protocol/decoder`), the pure record decoder (`_pure/decoder`) and the
cache of the pure builder (`_pure/wire`).
"""

from typing import Final, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

SMALL_UVARINTS: Final = tuple(
    bytes([n]) if n < 0x80 else bytes([n & 0x7F | 0x80, n >> 7]) for n in range(1024)
)


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned integer."""
    if value < 1024:
        return SMALL_UVARINTS[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: Buffer, position: int, bits: int = 32) -> tuple[int, int]:
    """The unsigned integer at `position`, and the position behind it.

    Raises:
        IndexError: the buffer ends inside the integer.
        ValueError: it has more than `bits` bits, or more bytes than these need.
    """
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value, shift = byte & 0x7F, 7
    while shift < bits:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                raise ValueError(f"a varint above {bits} bits")
            return value, position
        shift += 7
    raise ValueError(f"a varint longer than {'five' if bits == 32 else 'ten'} bytes")


def encode_varint(value: int) -> bytes:
    """Encode a signed integer, which wraps at 64 bits as Java's does."""
    if value >> 63 == 1:
        value -= 1 << 64
    return encode_uvarint(value << 1 if value >= 0 else (~value << 1) | 1)


def decode_varint(buffer: Buffer, position: int, bits: int = 32) -> tuple[int, int]:
    """The signed integer at `position`, and the position behind it; raises as `decode_uvarint`."""
    value, position = decode_uvarint(buffer, position, bits)
    return (value >> 1) ^ -(value & 1), position
