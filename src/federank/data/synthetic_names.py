"""Synthetic names for a synthetic city: "Amber Otter Bakery, Willowgate".

A place's name is a colour or mood, a creature or thing, the kind of place, and its neighbourhood. The words are
combined by number and never repeat: the n-th place of a category takes the combination n * STRIDE, counted
round. A likeness to any real place is chance.
"""

from __future__ import annotations

from collections.abc import Iterable

MOODS = (
    "Amber", "Azure", "Bashful", "Brave", "Bright", "Bronze", "Calm", "Candid", "Cheerful", "Clever", "Copper",
    "Coral", "Cosy", "Crimson", "Curious", "Dappled", "Drowsy", "Eager", "Early", "Emerald", "Fabled", "Gentle",
    "Gilded", "Golden", "Grey", "Hidden", "Honest", "Humble", "Indigo", "Ivory", "Jolly", "Laughing", "Little",
    "Lucky", "Mellow", "Merry", "Misty", "Noble", "Olive", "Patient", "Pearl", "Plum", "Polite", "Quiet", "Ruby",
    "Rusty", "Scarlet", "Silver", "Singing", "Sleepy", "Spotted", "Striped", "Sunny", "Tall", "Tidy", "Velvet",
    "Violet", "Wandering", "White", "Winding",
)  # fmt: skip

THINGS = (
    "Acorn", "Anchor", "Badger", "Barrel", "Beacon", "Beetle", "Bell", "Brook", "Button", "Candle", "Clover",
    "Comet", "Cricket", "Crow", "Dolphin", "Donkey", "Falcon", "Feather", "Fern", "Finch", "Fox", "Gate", "Goose",
    "Hare", "Harp", "Hazel", "Hedgehog", "Heron", "Ivy", "Kettle", "Kite", "Lantern", "Lark", "Lemon", "Lobster",
    "Maple", "Moth", "Mountain", "Needle", "Orchard", "Otter", "Owl", "Pebble", "Pigeon", "Quill", "Rabbit",
    "River", "Robin", "Saddle", "Snail", "Sparrow", "Spoon", "Squirrel", "Stork", "Teapot", "Thistle", "Turtle",
    "Umbrella", "Walnut", "Whale",
)  # fmt: skip

KINDS = {
    "Arts & Entertainment": (
        "Cinema", "Theatre", "Gallery", "Museum", "Concert Hall", "Arcade", "Comedy Club", "Bowling Alley",
        "Opera House", "Puppet Stage",
    ),
    "College & University": (
        "College", "Library", "Lecture Hall", "Faculty", "Campus", "Laboratory", "Dormitory", "Reading Room",
        "Observatory", "Institute",
    ),
    "Food": (
        "Bakery", "Café", "Pizzeria", "Noodle Bar", "Trattoria", "Canteen", "Grill", "Tea House", "Creamery",
        "Kitchen",
    ),
    "Nightlife Spot": (
        "Bar", "Pub", "Nightclub", "Wine Cellar", "Lounge", "Beer Garden", "Jazz Club", "Taproom", "Karaoke",
        "Speakeasy",
    ),
    "Outdoors & Recreation": (
        "Park", "Garden", "Playground", "Swimming Pool", "Gym", "Sports Field", "Lookout", "Trail", "Beach",
        "Climbing Hall",
    ),
    "Professional & Other Places": (
        "Office", "Clinic", "Studio", "Workshop", "Town Hall", "School", "Meeting House", "Laundry", "Print Shop",
        "Factory",
    ),
    "Residence": (
        "House", "Court", "Terrace", "Lofts", "Apartments", "Mews", "Cottages", "Tower", "Villas", "Yard",
    ),
    "Shop & Service": (
        "Bookshop", "Market", "Grocery", "Florist", "Barber", "Shoe Shop", "Bank", "Toy Shop", "Pharmacy",
        "Bicycle Shop",
    ),
    "Travel & Transport": (
        "Station", "Bus Stop", "Hotel", "Hostel", "Ferry Pier", "Tram Stop", "Car Park", "Bridge", "Airport Gate",
        "Taxi Rank",
    ),
}  # fmt: skip
"""The nine top categories of Foursquare as the papers name them, and what places of each are called."""

CLIENTS_START = (
    "Alder", "Ash", "Barley", "Birch", "Bramble", "Chalk", "Clay", "Elder", "Flint", "Harbour", "Heather", "Juniper",
    "Lark", "Linden", "Meadow", "Mill", "Moss", "North", "Reed", "Rowan", "South", "Thorn", "West", "Willow",
)  # fmt: skip

CLIENTS_END = (
    "bank", "bridge", "brook", "cross", "dale", "end", "field", "gate", "green", "hill", "market", "mere", "row",
    "side", "wharf", "wick",
)  # fmt: skip

STRIDE = 22_247
"""A prime, so that counting by it meets every combination before any comes again."""


def district_names(count: int, offset: int) -> list[str]:
    """Different names for this many neighbourhoods; another offset gives other names."""
    combinations = len(CLIENTS_START) * len(CLIENTS_END)
    names = []
    for number in range(count):
        start, end = divmod((offset + number) * STRIDE % combinations, len(CLIENTS_END))
        names.append(CLIENTS_START[start] + CLIENTS_END[end] + _again(number // combinations))
    return names


def place_names(category: str, neighbourhoods: Iterable[str], offset: int) -> list[str]:
    """Different names for the places of one category, given the name of each one's neighbourhood."""
    kinds = KINDS[category]
    combinations = len(MOODS) * len(THINGS) * len(kinds)
    names = []
    for number, demo_clients in enumerate(neighbourhoods):
        words, kind = divmod((offset + number) * STRIDE % combinations, len(kinds))
        mood, thing = divmod(words, len(THINGS))
        again = _again(number // combinations)
        names.append(f"{MOODS[mood]} {THINGS[thing]} {kinds[kind]}{again}, {demo_clients}")
    return names


def _again(times: int) -> str:
    """The number that distinguishes equal names once all combinations are used up: 2, 3, ..."""
    return f" {times + 1}" if times else ""
