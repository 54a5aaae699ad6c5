"""Where rounds are played: plain Python to read, compiled code to use."""
