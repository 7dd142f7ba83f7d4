"""Many ranks reduced to one report: their clocks aligned by what they share, then compared."""
