"""How good, how even and how costly recommendations are."""
