"""From images to batches: datasets and their manifest, cache, transforms, sampling, loading."""
