"""Many simulated clients in one process, for rehearsals and the demo."""
