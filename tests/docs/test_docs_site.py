"""The site builds without warnings, holds every rule, leads nowhere wrong, and loads nothing from others."""

from __future__ import annotations

import logging
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from warplint.rulebook import load_rules

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, as `mkdocs build --strict` makes it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    directory = tmp_path_factory.mktemp("site")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    build(load_config(str(REPOSITORY / "mkdocs.yml"), site_dir=str(directory), strict=True))
    return directory


class _Page(HTMLParser):
    """Links, anchors and what the browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag == "link" and given.get("rel") != "canonical":
            self.loaded.append(str(given.get("href")))
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(str(given["src"]))


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, _Page]:
    """All pages of the site but the one for missing pages, whose links are absolute."""
    return {path: _Page(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_leads_somewhere(site, read):
    wrong = []
    for path, page in read.items():
        for link in page.links:
            target = urlparse(link)
            if target.scheme or target.netloc:
                continue
            file = (path.parent / unquote(target.path)).resolve() if target.path else path
            file = file / "index.html" if file.is_dir() else file
            known = file.is_file()
            if known and target.fragment and file.suffix == ".html":
                known = unquote(target.fragment) in read[file].anchors
            if not known:
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert not wrong


def test_every_rule_has_a_page_in_the_navigation(site, read):
    pages = {f"rules/{rule.id}-{rule.name}.html" for rule in load_rules().values()}
    assert pages <= set(read[site / "index.html"].links)


def test_a_rule_s_page_is_the_one_of_the_terminal(site):
    for rule in load_rules().values():
        html = (site / "rules" / f"{rule.id}-{rule.name}.html").read_text("utf-8")
        assert "<h1" in html and f"{rule.id} {rule.name}" in html
        assert ("What it does" in html) and ("How warplint proves it" in html)


def test_nothing_is_loaded_from_elsewhere(site, read):
    for path, page in read.items():
        for address in page.loaded:
            assert not urlparse(address).netloc, f"{path.relative_to(site)} loads {address}"
    for path in site.rglob("*.css"):
        assert "url(http" not in path.read_text("utf-8"), path


def test_the_schema_file_is_published(site):
    published = (site / "schema" / "report-1.json").read_bytes()
    assert published == (REPOSITORY / "docs" / "schema" / "report-1.json").read_bytes()


def test_everything_generated_is_there(site):
    commands = (site / "command-line.html").read_text("utf-8")
    for option in ("--no-probe", "--static-fail-on", "--timeout"):
        assert option in commands
    assert "generated:" not in "".join(p.read_text("utf-8") for p in site.rglob("*.html"))
