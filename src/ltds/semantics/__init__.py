"""What is known of classes before any image: one embedding per class name, and ways to make them."""
