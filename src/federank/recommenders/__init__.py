"""The methods as objects with fit, recommend, save and load."""
