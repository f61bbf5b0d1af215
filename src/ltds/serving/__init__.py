"""A local page that answers with a trained model: drop images on it, read their classes."""
