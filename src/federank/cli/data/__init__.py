"""`federank data`: known sets, statistics, splits, the city. Calls data/; reads no file itself."""
