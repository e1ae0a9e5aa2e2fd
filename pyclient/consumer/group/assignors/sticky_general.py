"""Sticky assignment where members read different topics, or where racks matter.

Partitions of one topic with replicas on the same racks are alike and make up a block. Members
keep what they own; what nobody owns goes to the readers with the fewest partitions; then single
partitions move from a member to one that has at least two fewer, until none can. Partitions that
nobody owned move before owned ones, and also along chains of members. At the end, a partition
goes back to its owner wherever that makes nothing less balanced.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

# Bounds on the search for ways to give partitions back, which groups of a few hundred members
# never reach.
_SWAP_CANDIDATES_MAX = 64
_RESTORE_STEPS_MAX = 1_000_000


class Readers:
    """The members that may read the partitions of a block, in order."""

    __slots__ = ("members", "set")

    def __init__(self, members: Iterable[int]) -> None:
        self.members = tuple(members)
        self.set = frozenset(self.members)


class Block:
    """Partitions that are alike: of one topic, and with replicas on the same racks.

    Attributes:
        partitions: their ids.
        readers: the members that may read them.
        near: the readers that have a replica on their rack, or no rack at all; the same object
            as `readers` where racks do not matter.
        kept: by member, the partitions that it has and owned before.
        given: by member, the partitions that it has and did not own.
    """

    __slots__ = ("given", "kept", "near", "partitions", "readers")

    def __init__(self, partitions: Sequence[int], readers: Readers, near: Readers) -> None:
        self.partitions = partitions
        self.readers = readers
        self.near = near
        self.kept: dict[int, list[int]] = {}
        self.given: dict[int, list[int]] = {}

    def give(self, member: int, partition: int, is_owner: bool) -> None:
        """Add a partition to a member."""
        (self.kept if is_owner else self.given).setdefault(member, []).append(partition)

    def take(self, member: int) -> int:
        """Remove one partition from a member, if possible one that it did not own."""
        side = self.given if member in self.given else self.kept
        partition = side[member].pop()
        if not side[member]:
            del side[member]
        return partition

    def take_given(self, member: int, partition: int) -> None:
        """Remove this partition, which the member did not own."""
        self.given[member].remove(partition)
        if not self.given[member]:
            del self.given[member]

    def near_count(self) -> int:
        """How many partitions are read within a rack."""
        return sum(
            len(partitions)
            for side in (self.kept, self.given)
            for member, partitions in side.items()
            if member in self.near.set
        )


class GeneralAssignment:
    """One assignment while it is made.

    Attributes:
        loads: how many partitions each member has.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        member_count: int,
        owners: Sequence[int],
        keep_far: bool = True,
    ) -> None:
        """Assign the partitions of the blocks.

        Args:
            blocks: all partitions.
            member_count: the members are numbered from 0.
            owners: who owned each partition; a number below 0 is nobody.
            keep_far: owners may keep partitions that have no replica on their rack.
        """
        self.blocks = sorted(blocks, key=lambda block: len(block.readers.members))
        self.loads = [0] * member_count
        self._owners = owners
        self._has_racks = any(block.near is not block.readers for block in self.blocks)
        for block in self.blocks:
            self._start(block, keep_far)
        self._settle()
        while self._restore() or (not self._has_racks and self._restore_by_chains()):
            self._settle()

    def near_count(self) -> int:
        """How many partitions are read within a rack."""
        return sum(block.near_count() for block in self.blocks)

    def partitions(self) -> list[list[int]]:
        """The partition ids of each member."""
        found: list[list[int]] = [[] for _ in self.loads]
        for block in self.blocks:
            for side in (block.kept, block.given):
                for member, partitions in side.items():
                    found[member] += partitions
        return found

    def _start(self, block: Block, keep_far: bool) -> None:
        """Let owners keep their partitions, and give the others to those with the fewest."""
        owners, loads, kept = self._owners, self.loads, block.kept
        keepers = (block.readers if keep_far else block.near).set
        unassigned = []
        for partition in block.partitions:
            owner = owners[partition]
            if owner not in keepers:
                unassigned.append(partition)
            elif owner in kept:
                kept[owner].append(partition)
            else:
                kept[owner] = [partition]
        for member, partitions in kept.items():
            loads[member] += len(partitions)
        start = 0
        receivers = block.near.members or block.readers.members
        for member, count in _filled_up(receivers, loads, len(unassigned)):
            for partition in unassigned[start : start + count]:
                block.give(member, partition, owners[partition] == member)
            loads[member] += count
            start += count

    def _settle(self) -> None:
        """Move partitions until no move makes the assignment more balanced."""
        for only_given in (True, False):
            self._level_all(only_given, within_racks=True)
        if self._has_racks:
            for only_given in (True, False):
                self._level_all(only_given, within_racks=False)
        self._move_along_chains()

    def _level_all(self, only_given: bool, within_racks: bool) -> None:
        moved = True
        while moved:
            moved = False
            for block in self.blocks:
                receivers = block.near if within_racks else block.readers
                moved |= self._level(block, only_given, receivers)

    def _level(self, block: Block, only_given: bool, receivers: Readers) -> bool:
        """Move partitions of a block from full to emptier members; whether any was moved."""
        loads, given, kept = self.loads, block.given, block.kept
        givers = given.keys() if only_given else given.keys() | kept.keys()
        if not givers or not receivers.members:
            return False
        least = min(map(loads.__getitem__, receivers.members))
        if max(map(loads.__getitem__, givers)) < least + 2:
            return False
        # Entries of a load that has changed since are outdated, and skipped.
        empty = [(loads[member], member) for member in receivers.members]
        full = [(-loads[member], member) for member in givers]
        heapify(empty)
        heapify(full)
        while full:
            most, giver = full[0]
            least, receiver = empty[0]
            if -most != loads[giver] or not (giver in given or (giver in kept and not only_given)):
                heappop(full)
            elif least != loads[receiver]:
                heappop(empty)
            elif -most < least + 2:
                break
            else:
                self._hand_over(block, block.take(giver), giver, receiver)
                heappush(full, (-loads[giver], giver))
                heappush(full, (-loads[receiver], receiver))
                heappush(empty, (loads[receiver], receiver))
                if giver in receivers.set:
                    heappush(empty, (loads[giver], giver))
        return True

    def _move_along_chains(self) -> None:
        """Balance members that have no topic in common, through other members.

        Only with partitions that their members did not own: an owned one moves where that alone
        makes the assignment more balanced, as in Java, and not to let another one move.

        Members are looked at from the fullest down. Those that can pass nothing on to a member
        with two fewer are settled, with all that they could pass something to.
        """
        loads = self.loads
        if max(loads) - min(loads) < 2:
            return
        held = self._blocks_given()
        unsettled = dict.fromkeys(range(len(loads)))
        while unsettled:
            most = max(map(loads.__getitem__, unsettled))
            if most - min(map(loads.__getitem__, unsettled)) < 2:
                return
            fullest = [member for member in unsettled if loads[member] == most]
            emptier = {member for member in unsettled if loads[member] < most - 1}
            search = _ChainSearch(held, unsettled)
            end = search.run(fullest, emptier.__contains__)
            if end is not None:
                self._pass_on(search.chain(end), held)
                continue
            for member in search.reached:
                del unsettled[member]

    def _restore_by_chains(self) -> bool:
        """Give partitions back to owners that can pass something on to the holder in exchange."""
        held = self._blocks_given()
        everybody = range(len(self.loads))
        steps = 0
        restored = False
        for block, partition, holder in self._away():
            if steps > _RESTORE_STEPS_MAX:
                break
            if partition not in block.given.get(holder, ()):
                continue  # passed on meanwhile
            owner = self._owners[partition]
            search = _ChainSearch(held, everybody)
            end = search.run([owner], holder.__eq__)
            steps += len(search.reached)
            if end is None:
                continue
            block.take_given(holder, partition)
            self._hand_over(block, partition, holder, owner)
            self._pass_on(search.chain(end), held)
            restored = True
        return restored

    def _blocks_given(self) -> list[list[Block]]:
        """By member, the blocks of which it has partitions that it did not own."""
        held: list[list[Block]] = [[] for _ in self.loads]
        for block in self.blocks:
            for member in block.given:
                held[member].append(block)
        return held

    def _pass_on(
        self, chain: Iterable[tuple[int, Block, int]], held: Sequence[list[Block]]
    ) -> None:
        for giver, block, receiver in chain:
            self._hand_over(block, block.take(giver), giver, receiver)
            held[receiver].append(block)

    def _hand_over(self, block: Block, partition: int, giver: int, receiver: int) -> None:
        """Give the receiver what was taken from the giver."""
        block.give(receiver, partition, self._owners[partition] == receiver)
        self.loads[giver] -= 1
        self.loads[receiver] += 1

    def _restore(self) -> bool:
        """Give partitions back to their owners where balance and racks allow it.

        An owner takes a partition from a holder that has more than itself, or in exchange for
        one that it did not own.
        """
        owners, loads = self._owners, self.loads
        away = self._away()
        if not away:
            return False
        foreign: dict[int, dict[int, Block]] = {}  # by member, what it did not own
        for block in self.blocks:
            for member, partitions in block.given.items():
                foreign.setdefault(member, {}).update(dict.fromkeys(partitions, block))
        restored = False
        for block, partition, holder in away:
            owner = owners[partition]
            if partition not in foreign[holder]:
                continue  # exchanged for another one meanwhile
            nearer = (owner in block.near.set) - (holder in block.near.set)
            if loads[holder] > loads[owner] and nearer >= 0:
                swap = None
            else:
                swap = self._swap_for(foreign.get(owner, {}), owner, holder, nearer)
                if swap is None:
                    continue
            del foreign[holder][partition]
            block.take_given(holder, partition)
            self._hand_over(block, partition, holder, owner)
            if swap is not None:
                other, exchanged = swap
                del foreign[owner][exchanged]
                other.take_given(owner, exchanged)
                self._hand_over(other, exchanged, owner, holder)
                if owners[exchanged] != holder:
                    foreign[holder][exchanged] = other
            restored = True
        return restored

    def _away(self) -> list[tuple[Block, int, int]]:
        """The partitions that their owners could have and do not, each with who has it."""
        owners = self._owners
        return [
            (block, partition, holder)
            for block in self.blocks
            for holder, partitions in block.given.items()
            for partition in partitions
            if owners[partition] in block.readers.set
        ]

    def _swap_for(
        self, foreign: dict[int, Block], owner: int, holder: int, nearer: int
    ) -> tuple[Block, int] | None:
        """What the owner of a partition can give for it: best one that the holder owned."""
        found: tuple[Block, int] | None = None
        for partition, block in islice(foreign.items(), _SWAP_CANDIDATES_MAX):
            if holder not in block.readers.set:
                continue
            if nearer + (holder in block.near.set) - (owner in block.near.set) < 0:
                continue
            if self._owners[partition] == holder:
                return block, partition
            found = found or (block, partition)
        return found


class _ChainSearch:
    """Who a member can pass partitions on to that it did not own, directly or through others.

    Attributes:
        reached: those members, each with who passes what to it; None for the first ones.
    """

    def __init__(self, held: Sequence[Iterable[Block]], members: Container[int]) -> None:
        """Only `members` are looked at, and `held` says of which blocks each was given some."""
        self._held = held
        self._members = members
        self._opened: set[int] = set()
        self.reached: dict[int, tuple[int, Block] | None] = {}

    def run(self, first: Iterable[int], is_end: Callable[[int], bool]) -> int | None:
        """The nearest member that the chain may end at; None if there is none."""
        queue = list(first)
        self.reached = dict.fromkeys(queue)
        for giver in queue:  # which grows meanwhile
            for block in self._held[giver]:
                if id(block) in self._opened or giver not in block.given:
                    continue
                self._opened.add(id(block))
                for member in block.readers.members:
                    if member not in self.reached and member in self._members:
                        self.reached[member] = (giver, block)
                        if is_end(member):
                            return member
                        queue.append(member)
        return None

    def chain(self, end: int) -> Iterator[tuple[int, Block, int]]:
        """The moves that reach a member: giver, block and receiver, the last one first."""
        receiver = end
        while (step := self.reached[receiver]) is not None:
            giver, block = step
            yield giver, block, receiver
            receiver = giver


def _filled_up(
    members: Sequence[int], loads: Sequence[int], count: int
) -> Iterator[tuple[int, int]]:
    """How many of `count` partitions each member gets if the least loaded are filled up first."""
    if not count or not members:
        return
    ordered = sorted(members, key=loads.__getitem__)
    level, filled, left = loads[ordered[0]], 1, count
    while filled < len(ordered):
        step = loads[ordered[filled]] - level
        if step * filled > left:
            break
        left -= step * filled
        level += step
        filled += 1
    rounds, extras = divmod(left, filled)
    level += rounds
    # As if dealt one by one: at the same load the first member comes first.
    for place, member in enumerate(sorted(ordered[:filled])):
        missing = level - loads[member] + (place < extras)
        if missing:
            yield member, missing
