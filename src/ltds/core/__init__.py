"""What everything else is made of: types, the task, errors, randomness, settings, run directories."""
