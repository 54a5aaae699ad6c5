"""The page's files themselves: light, readable in both colour schemes, nothing inline, no way from text to markup."""

import gzip
import re
from pathlib import Path

import pytest

from federank.service.server.http.app import read_assets

PAGE = Path(__file__).parents[3] / "src" / "federank" / "service" / "web"
SCRIPTS = sorted(PAGE.rglob("*.js"))
SHEETS = {"light": 0, "dark": 1}


def colours(scheme):
    """The sheet's colours by name, as a scheme has them."""
    blocks = re.findall(r":root \{(.*?)\}", (PAGE / "style.css").read_text(), re.DOTALL)
    return dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", blocks[SHEETS[scheme]]))


def luminance(colour):
    """Relative luminance, as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SHEETS)
@pytest.mark.parametrize(
    "pair",
    [
        *(f"{text} {ground}" for text in ("ink", "quiet", "accent", "danger") for ground in ("paper", "card")),
        *("on-accent accent", "ink soft", "left left-soft", "ink left-soft"),
    ],
)
def test_text_can_be_read_on_its_ground(scheme, pair):
    text, ground = (colours(scheme)[name] for name in pair.split())
    assert contrast(text, ground) >= 4.5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(PAGE)))
def test_no_script_makes_markup_or_code_out_of_text(script):
    text = script.read_text()
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert way not in text


@pytest.mark.parametrize("name", ["index.html", "admin.html"])
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(name):
    text = (PAGE / name).read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)
    assert not re.search(r"(src|href)=\"(https?:)?//", text)


def test_all_that_can_be_asked_for_is_small_on_the_wire():
    """Everything that a browser may ask for, the operator's page and every language included, as it is sent."""
    assets = read_assets(PAGE)
    assert len(assets) > 40
    assert sum(len(asset.compressed) for asset in assets.values()) < 210_000


def test_every_file_is_sent_as_what_it_is():
    assets = read_assets(PAGE)
    assert {asset.media_type for name, asset in assets.items() if name.endswith(".js")} == {"text/javascript"}
    assert assets["index.html"].media_type == "text/html"
    assert assets["icon.svg"].media_type == "image/svg+xml"
    assert all(gzip.decompress(asset.compressed) == asset.content for asset in assets.values())
