"""Python devices beside the browsers: `python neighbours.py ADDRESS HOW_MANY ROUNDS [ASKS A SECOND]`."""

import asyncio
import sys

from federank.data.synthetic import city
from federank.service.demo import fleet_of

if __name__ == "__main__":
    address, people, rounds, *rate = sys.argv[1:]
    pace = float(rate[0]) if rate else None
    asyncio.run(fleet_of(address, city(60, 150, 1200), int(people), rounds=int(rounds), rate=pace).play())
