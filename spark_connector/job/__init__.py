"""A streaming job by configuration alone: `python -m spark_connector job.properties`.

- `files`: reads `.properties` and `.toml`, from local and Hadoop's file systems
- `config`: what a job consists of, checked key by key
- `schemas`: the schema of a topic's JSON values
- `plan`: views and queries as DataFrames, checked before anything starts
- `runner`: starts the queries and watches them
"""
