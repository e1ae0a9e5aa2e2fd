"""`python -m pyclient.compat.confluent app.py`: run a program written for confluent-kafka."""

import sys

from pyclient.compat.confluent.alias import main

main(sys.argv[1:])
