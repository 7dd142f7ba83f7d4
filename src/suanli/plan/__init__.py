"""Plans: what a run will take."""
