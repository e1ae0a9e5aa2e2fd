"""`python -m pyclient.perf.embedded_broker`: a broker until standard input ends.

It prints its address. In a process of its own it shares neither the GIL nor the CPU figures of the
client that is measured.
"""

import sys


def main() -> None:
    from broker_stub import Broker

    with Broker(keep_requests=False) as broker:
        print(broker.bootstrap_servers, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
