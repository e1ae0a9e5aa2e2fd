"""Produce and Fetch without message objects: requests parsed and answers packed by hand.

A shortcut past the codec for what a broker does all day, and for nothing else: the handlers in
`handlers/` say what happens, these modules only spare the objects between. They take a request
as a whole or not at all: what they do not know (tagged fields, transactional ids, null records,
anything malformed) they leave alone, untouched, and the ordinary way takes it from the start.
"""
