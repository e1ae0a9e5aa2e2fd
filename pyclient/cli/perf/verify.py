"""`pyclient perf verify`."""

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.perf.outcome import servers_of


@click.command()
@click.option("--topic", default="verify-test", show_default=True)
@click.option("--num-records", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--throughput", type=float, default=-1, help="Records per second; -1 is no limit.")
@click.option(
    "--timeout", type=click.IntRange(1), default=60_000, show_default=True, metavar="MS",
    help="Give up when nothing can be read for this long.",
)  # fmt: skip
@cluster_options
def verify(cluster: Cluster, topic: str, num_records: int, throughput: float, timeout: int) -> None:
    """Prove that nothing is lost, doubled or reordered.

    Sends numbered records and reads them back, also while brokers restart. Ctrl-C stops sending
    and verifies what was sent.
    """
    from pyclient.errors import KafkaError
    from pyclient.perf import FixedRate
    from pyclient.perf.verify import verify_delivery

    with servers_of(cluster) as servers:
        address = {"bootstrap.servers": servers}
        ledger = verify_delivery(
            {**cluster.options("producer"), **address},
            {**cluster.options("consumer"), **address},
            topic,
            num_records,
            schedule=FixedRate(throughput) if throughput > 0 else None,
            timeout_ms=timeout,
        )
    for each in ledger.shown:
        print(each)
    print(ledger.verdict())
    if ledger.faults:
        raise KafkaError(f"{ledger.faults.total()} faults were found")
