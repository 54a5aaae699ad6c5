"""Store: what a device keeps, in one file that its owner alone can read; the device's SQL is here and nowhere else.

store.py opens and writes it, reading.py reads it, file_format.py has its tables and those of earlier formats,
private_file.py makes it and locks it.
"""
