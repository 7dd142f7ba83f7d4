"""One file a format; each gives one noun. Readers never import verbs and never execute what they read."""
