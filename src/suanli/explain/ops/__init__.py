"""What one call of an operator multiplies and moves, from the shapes, types and values a trace keeps of it."""
