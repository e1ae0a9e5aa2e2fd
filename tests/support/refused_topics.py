"""A scripted cluster that refuses all topics."""

from pyclient.errors import InvalidTopicError
from pyclient.net.scripted import ScriptedNetwork
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataResponse


def refuse_topics(network: ScriptedNetwork) -> None:
    """Answer Metadata with INVALID_TOPIC_EXCEPTION for every topic."""
    describe = network.describe

    def refuse(request: MetadataRequest, version: int) -> MetadataResponse:
        response = describe(request, version)
        for topic in response.topics:
            topic.error_code = InvalidTopicError.code
            topic.partitions = []
        return response

    network.brokers[1].on(MetadataRequest, refuse)
