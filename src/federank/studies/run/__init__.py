"""Carrying a study out: runs are given to workers, values chosen on validation, finished lines kept at once.

It calls plan/ for what there is to do and results/ to keep it; how it is shown is the report's affair.
"""
