"""From features and heads to tags: what the model believes, and what is told of it."""
