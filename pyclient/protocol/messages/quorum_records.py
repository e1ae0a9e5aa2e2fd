"""Control records of the controllers' quorum that tell who is in it.

The first field of each is the version that the rest is in.
"""

from pyclient.protocol.primitives import INT16, INT32, STRING, UINT16, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field, struct


class LeaderChangeVoter(Struct):
    voter_id: int = field(INT32)
    voter_directory_id: Uuid = field(UUID, versions="1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """A controller was elected."""

    version: int = field(INT16)
    leader_id: int = field(INT32)
    voters: list[LeaderChangeVoter] = field(array(LeaderChangeVoter))
    granting_voters: list[LeaderChangeVoter] = field(array(LeaderChangeVoter))


class VoterEndpoint(Struct):
    """Where a controller listens."""

    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


class KRaftVersionFeature(Struct):
    """The versions of the quorum's protocol that a controller speaks."""

    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


class Voter(Struct):
    voter_id: int = field(INT32)
    voter_directory_id: Uuid = field(UUID)
    endpoints: list[VoterEndpoint] = field(array(VoterEndpoint))
    k_raft_version_feature: KRaftVersionFeature = field(struct(KRaftVersionFeature))


class VotersRecord(Message, versions="0", flexible="0+"):
    """The controllers that vote from now on."""

    version: int = field(INT16)
    voters: list[Voter] = field(array(Voter))
