"""Configuration: one table of keys per client, validated and documented from the same rows."""
