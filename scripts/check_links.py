#!/usr/bin/env python3
"""Checks the links of the Markdown files that git tracks: the file must exist, and the heading, where one is named.

    scripts/check_links.py

Links to other sites are not followed.
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def text_of(path):
    """The file without its code blocks."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """The names that headings have on the usual sites."""
    headings = re.findall(r"^#+ +(.*)$", text_of(path), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def main():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    broken, count = [], 0
    for name in listed.stdout.split():
        page = ROOT / name
        if not page.exists():
            continue
        for link in LINK.findall(re.sub(r"`[^`]*`", "", text_of(page))):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if not target.exists():
                broken.append(f"{name}: {link}: no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{name}: {link}: there is no such heading")
    for each in broken:
        print(each)
    print(f"links: {count} checked, {len(broken)} broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
