"""Pages of the documentation that code writes: they cannot differ from what they describe.

A hook of mkdocs. The start page is README.md, each command has a page from its help, each room of
the package one from its docstrings. Pages in docs/ that mkdocs.yml does not place stand at the end.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from looped.cli import COMMANDS, COMMANDS_WITH_ACTIONS, TRAINING_COMMANDS

ROOT = Path(__file__).parents[1]
HELP_COLUMNS = "100"

# Prints the help of every command line that it is given, as JSON; in one process, because what
# takes time is the import of torch.
PRINT_HELPS = """
import contextlib, io, json, sys
from looped.cli import main
helps = {}
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main([*line.split(), "--help"])
    helps[line] = text.getvalue()
print(json.dumps(helps))
"""

NOT_IN_THE_REFERENCE = ("commands", "cli", "__main__", "__init__")  # that is the command line


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Place the generated pages, and those that the configuration forgot."""
    sections = {
        "Commands": [f"commands/{name}.md" for name in TRAINING_COMMANDS | COMMANDS],
        "Python": [f"reference/{room}.md" for room in reference_pages()],
    }
    for entry in config.nav:
        for title, pages in sections.items():
            if isinstance(entry, dict) and title in entry:
                entry[title] = pages
    placed = json.dumps(config.nav)
    others = [path.name for path in sorted((ROOT / "docs").glob("*.md"))]
    config.nav += [name for name in others if f'"{name}"' not in placed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {"index.md": start_page((ROOT / "README.md").read_text(encoding="utf-8"))}
    pages |= {f"commands/{name}.md": text for name, text in command_pages().items()}
    pages |= {f"reference/{room}.md": text for room, text in reference_pages().items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def start_page(readme: str) -> str:
    """README.md with its links made those of a page in docs/."""
    return re.sub(r"\]\(docs/", "](", readme)


def command_pages() -> dict[str, str]:
    """One page per command: its purpose and its help, and that of each of its actions."""
    purposes = TRAINING_COMMANDS | COMMANDS
    lines = {name: [name] for name in purposes}
    for name in COMMANDS_WITH_ACTIONS:
        lines[name] += [f"{name} {action}" for action in _actions(name)]
    helps = _helps([line for group in lines.values() for line in group])
    pages = {}
    for name, group in lines.items():
        page = f"# looped {name}\n\n{purposes[name]}\n"
        for line in group:
            page += f"\n## looped {line} --help\n" if len(group) > 1 else ""
            page += f"\n```text\n{helps[line].strip()}\n```\n"
        pages[name] = page
    return pages


def reference_pages() -> dict[str, str]:
    """The docstrings: one page for the modules of the ground floor, one per room of the house."""
    package = ROOT / "looped"
    rooms = sorted(path.parent for path in package.glob("*/__init__.py"))
    pages = {"ground-floor": _docstrings("looped", package)}
    for room in rooms:
        if room.name not in NOT_IN_THE_REFERENCE:
            pages[room.name] = _docstrings(f"looped.{room.name}", room)
    return pages


def _docstrings(package: str, folder: Path) -> str:
    names = sorted(path.stem for path in folder.glob("*.py"))
    page = f"# {package}\n\n::: {package}\n"
    page += "    options: {members: false, show_root_heading: false}\n"
    for name in names:
        if name not in NOT_IN_THE_REFERENCE:
            page += f"\n::: {package}.{name}\n"
    return page


def _actions(command: str) -> list[str]:
    """Names of a command's actions: each lives in looped/commands/<command>_<action>.py."""
    files = sorted((ROOT / "looped" / "commands").glob(f"{command}_*.py"))
    return [path.stem.removeprefix(f"{command}_") for path in files]


def _helps(lines: list[str]) -> dict[str, Any]:
    environment = os.environ | {"COLUMNS": HELP_COLUMNS, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HELPS, json.dumps(lines)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    helps: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return helps
