# SPDX-License-Identifier: Apache-2.0
"""The page: sections of words, pictures, tables and the commands that repeat them, as one HTML file
with its style in it and nothing from elsewhere.

A figure that was measured says where it is from: the file and the place in it, as the attributes
data-file and data-key of its cell. A key is a path such as flows/steady/latency/p99_ms; of a list
the element is taken whose `name` (or, in a sweep, `text`) it is.
"""

import html
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def look_up(data, key):
    """What is at a key of parsed JSON."""
    while key:
        if isinstance(data, list):  # names may have a slash themselves
            names = [one.get("name", one.get("text")) for one in data]
            name = next(name for name in names if key.startswith(name + "/"))
            data, key = data[names.index(name)], key[len(name) + 1:]
        else:
            part, _, key = key.partition("/")
            data = data[part]
    return data


class Figure:
    """A number of a JSON file below the report's folder, and how it is shown."""

    def __init__(self, folder, file, key, decimals=1, scale=1):
        self.file, self.key, self.decimals, self.scale = file, key, decimals, scale
        self.value = look_up(json.loads((folder / file).read_text()), key)

    def __str__(self):
        return shown(self.value * self.scale, self.decimals)

    def cell(self):
        scale = f' data-scale="{self.scale}"' if self.scale != 1 else ""
        return (f'<td class="number" data-file="{escape(self.file)}" data-key="{escape(self.key)}"'
                f"{scale}>{self}</td>")


def shown(number, decimals):
    return f"{number:,.{decimals}f}"


def escape(text):
    return html.escape(str(text), quote=True)


def cell(content):
    if isinstance(content, Figure):
        return content.cell()
    if isinstance(content, (int, float)):
        return f'<td class="number">{content:,}</td>'
    return f"<td>{escape(content)}</td>"


def table(heads, rows):
    """A table in a box of its own, which scrolls where the screen is too narrow."""
    lines = ['<div class="scroll"><table>', "<thead><tr>"]
    numeric = [any(isinstance(row[i], (Figure, int, float)) for row in rows)
               for i in range(len(heads))]
    lines += [f'<th class="number">{escape(head)}</th>' if number else f"<th>{escape(head)}</th>"
              for head, number in zip(heads, numeric)]
    lines.append("</tr></thead><tbody>")
    lines += ["<tr>" + "".join(cell(content) for content in row) + "</tr>" for row in rows]
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


class Section:
    """One part of the page; the blocks are HTML."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.blocks = []

    def text(self, words):
        self.blocks.append(f"<p>{escape(words)}</p>")

    def finding(self, words):
        """The sentence to remember."""
        self.blocks.append(f'<p class="finding">{escape(words)}</p>')

    def note(self, words):
        """What the reader must know before trusting a figure."""
        self.blocks.append(f'<p class="note">{escape(words)}</p>')

    def notes(self, words, lines):
        """The same for several sentences: one line, and the sentences when it is opened."""
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        self.blocks.append(f'<details class="note"><summary>{escape(words)}</summary>'
                           f"<ul>{items}</ul></details>")

    def table(self, heads, rows):
        self.blocks.append(table(heads, rows))

    def heading(self, words):
        self.blocks.append(f"<h3>{escape(words)}</h3>")

    def picture(self, path, words, size, commands=()):
        """An image of the report's folder with its caption, and how it is drawn again."""
        width, height = size
        self.blocks.append(
            f'<figure><a class="scroll" href="{escape(path)}"><img src="{escape(path)}" alt="{escape(words)}" '
            f'width="{width}" height="{height}" loading="lazy"></a>'
            f"<figcaption>{escape(words)}</figcaption></figure>")
        if commands:
            self.commands("Draw it again", commands)

    def commands(self, title, commands, files=()):
        lines = [f"<details><summary>{escape(title)}</summary>",
                 "<pre>" + escape("\n".join(commands)) + "</pre>"]
        if files:
            links = ", ".join(f'<a href="{escape(file)}">{escape(file)}</a>' for file in files)
            lines.append(f'<p class="files">Files: {links}</p>')
        lines.append("</details>")
        self.blocks.append("\n".join(lines))

    def html(self):
        return (f'<section id="{escape(self.name)}"><h2>{escape(self.title)}</h2>\n'
                + "\n".join(self.blocks) + "\n</section>")


class Page:
    """Title, key figures, sections."""

    def __init__(self, title, lead):
        self.title, self.lead = title, lead
        self.warning = None  # what to know before anything else
        self.cards = []
        self.sections = []

    def card(self, figure, words, section):
        """A key figure on top that leads to its section."""
        self.cards.append(f'<a class="card" href="#{escape(section)}"><b>{escape(figure)}</b>'
                          f"<span>{escape(words)}</span></a>")

    def add(self, section):
        self.sections.append(section)

    def write(self, path):
        style = (HERE / "style.css").read_text()
        links = "".join(f'<a href="#{escape(one.name)}">{escape(one.title.split(":")[0])}</a>'
                        for one in self.sections)
        warning = f'<p class="note">{escape(self.warning)}</p>' if self.warning else ""
        body = "\n".join(one.html() for one in self.sections)
        path.write_text(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(self.title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(self.title)}</h1>
<p>{escape(self.lead)}</p>
</header>
<nav>{links}</nav>
<main>
{warning}
<div class="cards">{"".join(self.cards)}</div>
{body}
</main>
</body>
</html>
""")
