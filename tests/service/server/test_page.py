"""The page as it is served: one file for many modules, and a federation's words in the HTML."""

import asyncio
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from tests.service.federations import FRUGAL_SERVER, establish_small, opened, serving

from federank.federation.server import Content
from federank.service.server.config import catalogue_from
from federank.service.server.http.app import PAGE
from federank.service.server.http.page import (
    FIRST_ITEMS,
    START,
    STYLE,
    WORKER,
    BundleError,
    bundle,
    bundles,
    first_sight,
    preferred,
)
from federank.service.server.model_versions import first_model
from federank.service.server.store.queries import put_value

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

MODULES = {
    "app.js": 'import { count, raise } from "./deep/count.js";\nimport * as all from "./deep/index.js";\n'
    "raise();\n"
    'const { late } = await import("./deep/late.js");\n'
    "console.log(JSON.stringify([count, all.twice(4), late(), all.here, all.left + all.right]));\n",
    "deep/count.js": "/* A comment with\nimport { nothing } from './nowhere.js'\n*/\n"
    "export let count = 1;\nexport function raise() {\n  count += 1;\n}\n",
    "deep/index.js": 'import { double } from "./double.js";\nexport const twice = (value) => double(value);\n'
    "export const here = import.meta.url.split('/').at(-1);\nexport const [left, right] = [1, 2];\n",
    "deep/double.js": "export const double = (value) => 2 * value;\n",
    "deep/late.js": 'import { count } from "./count.js";\nexport const late = () => count * 10;\n',
}


def run(folder, modules, entry):
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "package.json").write_text('{"type": "module"}')
    done = subprocess.run(["node", folder / entry], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_bundle_does_what_its_modules_do(tmp_path):
    one = {"one.js": bundle(MODULES, ["app.js"], "one.js")}
    expected = [2, 8, 20, "index.js", 3]
    (tmp_path / "modules").mkdir()
    (tmp_path / "bundle").mkdir()
    assert run(tmp_path / "modules", MODULES, "app.js") == expected
    assert run(tmp_path / "bundle", one, "one.js") == expected


@pytest.mark.parametrize(
    ("modules", "named"),
    [
        ({"app.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./app.js";\n'}, "app.js"),
        ({"app.js": 'import { b } from "./b.js";\n'}, "b.js"),
        ({"app.js": 'import * as b from "./b.js";\nexport let a = 1;\n', "b.js": "export let a = 2;\n"}, "b.js"),
    ],
    ids=["cycle", "missing", "two variables of one name"],
)
def test_modules_that_cannot_be_bundled_are_refused(modules, named):
    with pytest.raises(BundleError, match=re.escape(named)):
        bundle(modules, ["app.js"], "one.js")


@needs_node
def test_the_page_can_be_bundled(tmp_path):
    files = {file.relative_to(PAGE).as_posix(): file.read_bytes() for file in PAGE.rglob("*") if file.is_file()}
    made = bundles(files)
    assert set(made) == {START, STYLE, WORKER}
    assert "@import" not in made.pop(STYLE)
    for name, text in made.items():
        script = tmp_path / f"{name.replace('/', '-')}.mjs"
        script.write_text(text)
        checked = subprocess.run(["node", "--check", script], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert not re.search(r"^(import|export) ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("it-IT,it;q=0.9,en;q=0.8", "it"),
        ("fr,de;q=0.7,en;q=0.9", "en"),
        ("fr", "en"),
        ("de;q=0,it", "it"),
        (";;q=x,,*", "en"),
    ],
)
def test_preferred_language(header, code):
    assert preferred(header, {"en": 1, "de": 1, "it": 1}) == code


async def test_page_names_the_federation_in_the_visitors_language(sqlite_store):
    info = {
        "description": 'Films & "more" <b>',
        "language": "en",
        "translations": {"de": {"name": "Filmabend", "description": "Filme."}},
    }
    establish_small(sqlite_store)
    with opened(sqlite_store) as connection, connection.transaction():
        for name, value in info.items():
            put_value(connection, name, value)
    async with serving(sqlite_store) as running:
        pages = {}
        for code in ("en", "de", "it"):
            pages[code] = (await running.client.get("/", headers={"Accept-Language": code})).text
        own = running.service.config.name
        assert f"<title>{own}</title>" in pages["en"]
        assert "<title>Filmabend</title>" in pages["de"]
        assert [re.search('<html lang="([^"]+)"', page)[1] for page in pages.values()] == ["en", "de", "it"]
        assert 'content="Films &amp; &quot;more&quot; &lt;b&gt;"' in pages["en"]
        assert re.search(r'id="name"[^>]* lang="en">', pages["it"]), "what is not translated says its language"
        for page in pages.values():
            assert "{" not in re.sub("<script.*?</script>", "", page, flags=re.DOTALL), "words wait for their values"
            scripts = re.findall(r'<script [^>]*src="([^"]+)"', page)
            assert scripts == [START]
        answers = await asyncio.gather(*(running.client.get(f"/{name}") for name in (START, WORKER)))
        assert [answer.headers["content-type"].split(";")[0] for answer in answers] == ["text/javascript"] * 2


async def test_page_has_the_most_popular_items(sqlite_store):
    async with serving(sqlite_store) as running:
        page = (await running.client.get("/")).text
        [content] = re.findall(r'<script type="application/json" id="first">(.*?)</script>', page, re.DOTALL)
        first = json.loads(content)
        catalogue = (await running.get("catalogue"))["items"]
        biases = running.service.latest.model.content.tables["biases"]
        most_popular = sorted(range(len(catalogue)), key=lambda number: -biases[number])[:FIRST_ITEMS]
        assert first["items"] == [catalogue[number] for number in most_popular]
        assert (first["count"], first["rated"], set(first["noun"])) == (len(catalogue), False, {"one", "many"})
        listed = (await running.client.get("/files.json")).json()
        assert "./" in listed["files"]


async def test_titles_are_escaped(sqlite_store):
    item = {"id": 1, "title": "</script><b>bold", "categories": []}
    async with serving(sqlite_store) as running:
        config = running.service.config._replace(catalogue=catalogue_from([item]))
    text = first_sight(config, first_model(Content({"vectors": np.zeros((1, 2), np.float32)})))
    assert text.count("<") == 2
    assert json.loads(text[text.index(">") + 1 : text.rindex("<")])["items"] == [item]


async def test_items_without_support_come_last(sqlite_store):
    items = [{"id": number, "title": f"Film {number}", "categories": []} for number in range(3)]
    async with serving(sqlite_store) as running:
        config = running.service.config._replace(catalogue=catalogue_from(items))
    vectors = np.array([[0], [-1], [2]], np.float32)
    model = first_model(Content({"vectors": vectors, "weights": np.array([0, 1, 1], np.float32)}))
    for min_support, order in ((1, [2, 0, 1]), (2, [2, 1, 0])):
        settings = FRUGAL_SERVER.kind(min_support=min_support)
        text = first_sight(config._replace(served=FRUGAL_SERVER, settings=settings), model)
        shown = json.loads(text[text.index(">") + 1 : text.rindex("<")])["items"]
        assert [item["id"] for item in shown] == order
