"""Where rounds are played: plain Python to read, compiled code to use, a cluster where one machine is too small.

Here lives what every family's engines share (training, checkpoints, threads); each family has a folder with its
federation, its engines and the count of its traffic. Calls protocol, models and data.
"""
