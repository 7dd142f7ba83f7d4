"""What workers have loaded before they are started: every verb's modules, but no framework."""
