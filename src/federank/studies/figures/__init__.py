"""The pictures of a report, one file per kind: rows of runs in, a drawing and a sentence out.

They read what plan/ wishes for and results/ has gathered, and know nothing of how runs are made or pages are written.
"""
