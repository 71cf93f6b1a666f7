# SPDX-License-Identifier: Apache-2.0
"""make report in its short form: the page is whole, asks nothing of the network, and every figure on it is
the one of the JSON file that it names."""
import html.parser
import json
import os
import sys
import xml.etree.ElementTree

import pytest

from lab import process

VOID = {"meta", "img", "br", "link", "input", "hr"}
REPORT = os.path.join(process.ROOT, "bench", "report")


class Document(html.parser.HTMLParser):
    """What the tests ask about: links, images, cells, sections; tags must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.images, self.cells, self.ids, self.sections = [], [], [], [], [], {}
        self.feed(text)
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "section":
            self.sections[attributes["id"]] = ""
        if "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "img":
            self.images.append(attributes)
        if "data-file" in attributes:
            self.cells.append([attributes, ""])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.sections:
            self.sections[list(self.sections)[-1]] += data
        if self.cells and self.open[-1:] == ["td"] and not self.cells[-1][1]:
            self.cells[-1][1] = data


@pytest.fixture(scope="module")
def report():
    """(folder, the page's text, the page read) of a short report, with programs as they are built."""
    folder = process.scratch("spillway-report-")
    process.run([sys.executable, os.path.join(REPORT, "make_report.py"), folder], deadline_s=540,
                env=dict(os.environ, SPILLWAY_REPORT_SECONDS="1",
                         SPILLWAY_BIN=os.path.dirname(process.program("spillway"))))
    with open(os.path.join(folder, "index.html")) as page:
        text = page.read()
    return folder, text, Document(text)


def value_at(data, key):
    """What is at a path of keys and names; a name may hold a slash itself."""
    if not key:
        return data
    if isinstance(data, list):
        for one in data:
            name = one.get("name", one.get("text"))
            if key.startswith(name + "/"):
                return value_at(one, key[len(name) + 1:])
        raise KeyError(key)
    first, _, rest = key.partition("/")
    return value_at(data[first], rest)


def test_every_figure_is_the_files(report):
    folder, _, page = report
    assert len(page.cells) > 50
    for attributes, text in page.cells:
        with open(os.path.join(folder, attributes["data-file"])) as file:
            value = value_at(json.load(file), attributes["data-key"]) * float(attributes.get("data-scale", 1))
        decimals = len(text.partition(".")[2])
        assert abs(float(text.replace(",", "")) - value) <= 0.5000001 * 10 ** -decimals, (attributes, text, value)


def test_every_link_and_picture_is_there(report):
    folder, _, page = report
    assert len(page.images) >= 10
    for link in page.links + [image["src"] for image in page.images]:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert os.path.isfile(os.path.join(folder, link)), link
    for image in page.images:
        assert image["alt"] and image["width"] and image["height"]
        if image["src"].endswith(".svg"):
            picture = xml.etree.ElementTree.parse(os.path.join(folder, image["src"])).getroot()
            assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 3, image["src"]


def test_nothing_comes_from_elsewhere(report):
    _, text, page = report
    assert not [link for link in page.links if ":" in link]
    assert "@import" not in text and "url(" not in text and "<script" not in text
    assert 'name="viewport"' in text


def test_the_sections(report):
    _, _, page = report
    assert list(page.sections) == ["isolation", "depth", "latency", "generator", "simulation", "admission",
                                   "scaling", "machine"]
    help_text = process.run([process.program("spillway"), "--help-config"]).stdout
    keys = {part.removesuffix("[]") for line in help_text.splitlines() if line and line[0] != " "
            for part in line.split(".")}
    for name, words in (("admission", {"admission"}), ("scaling", {"scaling", "fleet", "autoscaler"})):
        assert ("Not part of this build" in page.sections[name]) == (not keys & words)
    for name in ("isolation", "depth", "latency", "generator", "simulation"):
        assert "spill" in page.sections[name] and "Measure it again" in page.sections[name]


def test_a_missing_program_is_told():
    done = process.run([sys.executable, os.path.join(REPORT, "make_report.py"), process.scratch()], check=False,
                       env=dict(os.environ, SPILLWAY_BIN="/nowhere"))
    assert done.returncode != 0 and "run make first" in done.stderr and "Traceback" not in done.stderr
