"""A program of its own that copies topic `in` to topic `out` exactly once, to be killed."""

import sys

from pyspark.sql import SparkSession

import spark_connector


def main(servers: str, checkpoint: str, trigger: str) -> None:
    """Run the stream until it is killed, or with `availableNow` until it has caught up."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("exactly once")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark_connector.register(spark, check_executors=False)
    stream = spark.readStream.format("pykafka").option("kafka.bootstrap.servers", servers)
    writer = (
        stream.option("subscribe", "in")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "1000" if trigger == "availableNow" else "40")
        .load()
        .select("value")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "out")
        .option("exactlyOnce", "true")
        .option("checkpointLocation", checkpoint)
    )
    if trigger == "availableNow":
        query = writer.trigger(availableNow=True).start()
    else:
        query = writer.start()
    print("STARTED", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
