"""Networks: backbones that map images to features, and what is built on them."""
