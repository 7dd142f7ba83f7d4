"""The page and /api, thin over the same verbs as the command line."""
