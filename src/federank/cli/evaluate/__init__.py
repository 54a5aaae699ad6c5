"""`federank evaluate`: one model, or one per fold; figures as a table or as JSON.

Everything they compute is in evaluation/.
"""
