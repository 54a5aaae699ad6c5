"""What a client does in a round, for each method that is served."""
