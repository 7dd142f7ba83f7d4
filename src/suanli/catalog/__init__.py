"""Facts with sources: accelerators, nodes, prices, model presets, conventions, published runs and claims."""
