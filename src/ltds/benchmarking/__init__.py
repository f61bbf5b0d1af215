"""Many runs: the grid that defines them, the executors that train them, and their status."""
