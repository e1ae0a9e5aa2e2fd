"""Membership in a consumer group: who reads what."""
