"""Attacks of a server that sees nothing but sums over a round's devices. They see a `SumsView` and nothing else."""
