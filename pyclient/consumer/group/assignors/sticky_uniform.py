"""Sticky assignment where all members read the same topics and racks do not matter.

Then the sizes are known beforehand: every member gets `partitions // members`, some one more. A
member keeps what it owns up to its size, which moves as few partitions as balance allows.
"""

from collections.abc import Sequence


def assign_uniform(owned: Sequence[list[int]], numbers: Sequence[int]) -> list[list[int]]:
    """The partition ids of each member.

    Args:
        owned: what each member owns; nothing twice.
        numbers: for each partition id its number in its topic.
    """
    quota, extras = divmod(len(numbers), len(owned))
    kept: list[list[int]] = []
    for partitions in owned:
        size = quota
        if len(partitions) > quota and extras:
            size += 1
            extras -= 1
        kept.append(partitions if len(partitions) <= size else _lowest(partitions, size, numbers))
    free = bytearray(b"\1") * len(numbers)
    for partitions in kept:
        for partition in partitions:
            free[partition] = 0
    unassigned = [partition for partition, is_free in enumerate(free) if is_free]
    missing = [max(0, quota - len(partitions)) for partitions in kept]
    start = _deal(unassigned, missing, kept)
    # What is left is less than one for each member that has no more than the quota.
    at_quota = (partitions for partitions in kept if len(partitions) == quota)
    for partition, partitions in zip(unassigned[start:], at_quota, strict=False):
        partitions.append(partition)
    return kept


def _lowest(partitions: list[int], size: int, numbers: Sequence[int]) -> list[int]:
    """The partitions of the lowest numbers, which spreads what is given up over the topics."""
    return sorted(sorted(partitions), key=numbers.__getitem__)[:size]


def _deal(unassigned: list[int], missing: list[int], kept: list[list[int]]) -> int:
    """Deal partitions in turn to the members that miss some; returns how many were dealt.

    Members are dealt to in rounds. As many rounds as the neediest-but-last member takes part in
    are one step: each member gets every n-th partition of a slice.
    """
    in_turn = [member for member, count in enumerate(missing) if count]
    start = 0
    done = 0
    while in_turn:
        rounds = min(missing[member] for member in in_turn) - done
        end = start + rounds * len(in_turn)
        for turn, member in enumerate(in_turn):
            kept[member] += unassigned[start + turn : end : len(in_turn)]
        start = end
        done += rounds
        in_turn = [member for member in in_turn if missing[member] > done]
    return start
