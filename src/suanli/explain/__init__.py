"""Where the time of a trace went: classes and FLOPs of its kernels, the account of a step, many ranks."""
