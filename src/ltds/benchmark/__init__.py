"""Many runs: the grid that names them, the executors that make them, and where they stand."""
