"""Python devices beside the browsers: `python neighbours.py ADDRESS HOW_MANY ROUNDS [ASKS A SECOND]`."""

import sys

from federank.data.synthetic import city
from federank.service.demo import live

if __name__ == "__main__":
    address, people, rounds, *rate = sys.argv[1:]
    live(address, city(60, 150, 1200), int(people), rounds=int(rounds), rate=float(rate[0]) if rate else None)
