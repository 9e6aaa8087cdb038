"""A cell's tagger for other software: a stock transformers checkpoint, or ONNX."""
