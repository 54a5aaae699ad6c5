"""The maths of each method: scores and steps on arrays, nothing about devices, servers or files.

Calls arrays and compiling only; whatever knows more lives above.
"""
