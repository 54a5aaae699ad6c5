"""`python -m federank`: the command line where the console script is not on the path."""

from federank.cli import main

if __name__ == "__main__":
    main()
