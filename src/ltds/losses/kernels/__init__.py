"""Fast forms of losses and their gradients, in blocks. Each is tested against its readable form."""
