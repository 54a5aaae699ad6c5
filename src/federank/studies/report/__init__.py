"""The report of a results folder: tables first, then one of four forms to write them in.

It reads results/ and the wishes of plan/, and has figures/ draw; it never starts a run.
"""
