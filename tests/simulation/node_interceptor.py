"""An interceptor that stays with a simulated broker through its restarts."""

from broker_stub.dispatch import Interceptor
from broker_stub.node import Node
from broker_stub.testing.simulation import Simulation


class NodeInterceptor(Interceptor):
    """Intercepts the requests of every node that the world's broker runs."""

    def __init__(self, world: Simulation) -> None:
        self._node: Node | None = None
        world.broker.watch(self._watch)

    def _watch(self, node: Node) -> None:
        if node is not self._node:
            self._node = node
            self.on_start(node)
            # Last, so that it sees what the client sees.
            node.dispatcher.interceptors.append(self)

    def on_start(self, node: Node) -> None:
        """Called at each start of the broker."""
