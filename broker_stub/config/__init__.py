"""The broker's options: Kafka's names, their rules, and what listeners and topics make of them.

- `broker_config`: the options in force, and the defaults they give to topics
- `entries`: options as DescribeConfigs and CreateTopics show them
- `kafka_keys`: every option name of Apache Kafka, to tell a typo from an option without an effect
- `keys`: the table of options that have an effect here
- `listeners`: where a broker listens, and the addresses it advertises
- `objections`: why a value is refused, in the words of Apache Kafka
- `tls_keys`: the table of TLS options
- `transaction_keys`: the table of options of transactions
"""
