"""The pictures of a report, one file per kind: rows of runs in, a drawing and a sentence out.

They read the report's specification and the results, and know nothing of how runs are made or pages are written.
"""
