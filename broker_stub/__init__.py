"""A Kafka broker: small enough for a test, and with real storage.

with Broker() as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

`Broker` is imported when its name is first used: pytest loads this package's fixtures into every
run, and most runs need no broker.

- `config/`: options, listeners, properties files
- `coordinator/`: consumer groups and their committed offsets
- `data_path/`: Produce and Fetch without the codec
- `dump/`: what is in the files of partitions
- `handlers/`: one file per API
- `log/`: partitions on disk
- `metadata/`: the cluster's image, its log and its controller
- `net/`: sockets
- `replica/`: appending to partitions and reading them
- `testing/`: fixtures, faults, simulation
- `__main__`: the command line
- `arguments`: checks what `Broker(...)` is given
- `blocking_work`: the interface to the thread that may block
- `broker`: `Broker`: start, stop, kill, restart
- `diagnostics`: log lines; `request_trace`: logs requests
- `dispatch`: from a request's bytes to its handler and back; checks versions
- `integer_types`: the integer types of options
- `lifecycle_lock`: one start or stop at a time
- `node`: the broker's core, without sockets and threads
- `purgatory`: timers, and operations that wait
- `request`: a request's context and its reply, now or later
- `running_broker`: a broker's server, node and threads, between a start and a stop
- `turn`: work that the requests of one turn of the serving loop share
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_stub.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    if name != "Broker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import fcntl  # noqa: F401  looked for first, as all systems have it but Windows
    except ImportError:
        raise ImportError(
            "the broker runs on Linux and macOS only; on Windows, start it in WSL or in a"
            " container and connect to that"
        ) from None
    try:
        from broker_stub.broker import Broker
    except AttributeError as error:
        # `from broker_stub import Broker` would turn it into "cannot import name".
        raise ImportError(f"cannot import broker_stub.broker: {error}") from error
    return Broker
