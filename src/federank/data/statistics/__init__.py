"""What a data set looks like: in numbers, and in one picture.

Commands and the front door call these; they look at `Interactions` and change nothing.
"""
