"""Model types of transformers: which there are by task, and a small odd config of each."""
