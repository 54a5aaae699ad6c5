"""Frugal, PrivateFrugal and FCF: implicit least squares from few uploads."""
