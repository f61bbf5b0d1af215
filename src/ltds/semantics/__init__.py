"""Class embeddings: a vector for each class name, from attributes, word vectors or text encoders."""
