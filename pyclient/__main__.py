"""`python -m pyclient`: the command line."""

import sys

from pyclient.cli.main import main

sys.exit(main())
