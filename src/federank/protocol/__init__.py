"""The protocol: what happens in a round, in four steps, and what may cross the wire."""
