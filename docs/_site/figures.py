"""The documentation's own figures, drawn from the reports in docs/results: `make scorecard`.

    docs/figures/cost.svg       MovieLens 1M: precision against megabytes per client, of what can be deployed
    docs/figures/leakage.svg    an attacker who knows ten items of a user, with minimum support and without

Colours follow the reader's light or dark mode.
"""

from __future__ import annotations

import re
from typing import Any

import scorecard

from federank.studies.figures.style import BLUE, FAINT, GREEN, THEME, VERMILLION, as_svg, drawing, new_panel, themed

FIGURES = scorecard.ROOT / "docs" / "figures"
SETS = {
    "foursquare-italy": "Foursquare Italy",
    "amazon-digital-music": "Amazon",
    "ml-100k": "MovieLens 100K",
    "ml-1m": "MovieLens 1M",
}


def standalone(figure: Any, title: str) -> str:
    """An SVG file whose colours follow the reader's mode."""
    svg = themed(as_svg(figure), "f")
    light, dark = ("".join(f"--{name}:{pair[mode]};" for name, pair in THEME.items()) for mode in (0, 1))
    style = f"<title>{title}</title><style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    view = re.search(r'viewBox="[^"]+"', svg)
    assert view is not None
    return re.sub(
        r"<svg [^>]*>",
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view[0]} role="img">{style}',
        svg,
        count=1,
    )


def cost() -> str:
    """Precision against megabytes per client."""
    rows = [row for row in scorecard.configuration_rows() if row.name != "Frugal, tuned, 5 uploads"]  # the same place
    title = "Frugal needs 1.3 MB per client, 4.8 MB with a helper"
    beside = {"Frugal, 5 uploads": (-4, 14, "left"), "Frugal with a helper": (8, 5, "left")}
    with drawing():
        figure, axes = new_panel("")
        axes.set_title(f"{title}\n", fontsize=10, loc="left")
        axes.text(0, 1.02, "MovieLens 1M, means of three seeds", transform=axes.transAxes, fontsize=8.5, color=FAINT)
        axes.set_xscale("log")
        for row in rows:
            plain = row.reader == "operator"
            axes.plot(row.megabytes, row.precision, "o" if plain else "s", color=VERMILLION if plain else BLUE)
            right, up, side = beside.get(row.name, (6, 10, "right") if row.megabytes > 100 else (8, -2, "left"))
            place = (row.megabytes, row.precision)
            name = row.name.replace("the same", "with a helper").replace("`", "").removesuffix(" (simulation only)")
            axes.annotate(name, place, (right, up), textcoords="offset points", ha=side, va="center", fontsize=8.5)
        popular = scorecard.popular_precision()
        axes.axhline(popular, color=FAINT, linestyle=":")
        axes.text(1.0, popular + 0.0004, "most popular items", fontsize=8.5, color=FAINT)
        axes.plot([], [], "o", color=VERMILLION, label="the operator can read an upload")
        axes.plot([], [], "s", color=BLUE, label="neither server can")
        axes.legend(loc="center right", fontsize=8.5, bbox_to_anchor=(1, 0.4))
        axes.set_xlim(0.8, 700)
        axes.set_ylim(0.101, 0.135)
        axes.set_xticks([1, 10, 100], ["1", "10", "100"])
        axes.set_xlabel("Megabytes per client and lifetime, up and down")
        axes.set_ylabel("Precision@10")
        return standalone(figure, title)


def leakage() -> str:
    """What an attacker with side knowledge names correctly, for users in the sums and users left out of them."""
    title = "Minimum support removes most of what side knowledge adds"
    about = "Share of ten named items that is right; ten others are known"
    with drawing():
        figure, axes = new_panel("", 3.2)
        axes.set_title(f"{title}\n", fontsize=10, loc="left", x=-0.25)
        axes.text(-0.25, 1.02, about, transform=axes.transAxes, fontsize=8.5, color=FAINT)
        for at, data in enumerate(reversed(SETS)):
            for support, shift, color in ((1, 0.16, VERMILLION), (5, -0.16, GREEN)):
                place = (
                    "minimum-support.md",
                    f"An attacker who knows ten items: {data}",
                    f"Frugal, min_support = {support}",
                )
                inside, outside = (scorecard.cell(*place, f"{way}: cosines (sums)") for way in ("In", "Out"))
                axes.plot([outside, inside], [at + shift] * 2, color=color)
                axes.plot(outside, at + shift, "o", color=color, markerfacecolor="none")
                axes.plot(inside, at + shift, "o", color=color)
        axes.set_yticks(range(len(SETS)), list(SETS.values())[::-1])
        axes.set_xlim(0, 1)
        axes.set_xlabel("filled: user in the sums; hollow: the same user left out")
        axes.plot([], [], color=VERMILLION, label="all items in uploads")
        axes.plot([], [], color=GREEN, label="items of 5 users or more")
        axes.legend(loc="upper right", fontsize=8.5, bbox_to_anchor=(1, 0.62))
        return standalone(figure, title)


DRAWN = {"cost.svg": cost, "leakage.svg": leakage}


def main() -> None:
    """Draw every figure."""
    for name, draw in DRAWN.items():
        (FIGURES / name).write_text(draw())


if __name__ == "__main__":
    main()
