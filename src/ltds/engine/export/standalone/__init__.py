"""Scripts that are copied next to an ONNX export. They import nothing of ltds."""
