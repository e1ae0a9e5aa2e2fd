"""A network that follows a script, for tests of everything above the engine.

It is an `Environment`: a manual clock, seeded chance, brokers that are lists of answers, and
waiting that drives the loop. All of it happens on the thread of the test: a wait turns the loop
until it is woken, and when nothing is left to do, the clock jumps to what is due next. So a
whole client can be tested without a socket, a thread or a sleep.

- `broker`: a broker that answers from a script
- `network`: the brokers, the clock, and the loops of the clients
- `traffic`: counts a connection's bytes, and cuts it off
- `transport`: one connection
"""

from pyclient.net.scripted.broker import DISCONNECT, ScriptedBroker
from pyclient.net.scripted.network import ScriptedNetwork

__all__ = ["DISCONNECT", "ScriptedBroker", "ScriptedNetwork"]
