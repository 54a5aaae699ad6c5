"""Methods that bring their own messages: the four steps as functions, under the round of every other method.

It may call what all families share (choices, draws, wire); no family may call another.
"""
