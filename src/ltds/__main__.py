"""`python -m ltds`: the command `ltds`. Modules are not looked for in the current folder, which Python adds for -m."""

import os
import sys

if sys.path[:1] == [os.getcwd()] and not sys.flags.safe_path:
    del sys.path[0]

from ltds.cli.main import run

run()
