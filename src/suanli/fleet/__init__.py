"""Many traces on many workers: found in folders, summarised one by one, kept, taken up again after a break."""
