"""Save a chart of a report as a picture: `python tools/build_plot.py RUN/report.html docs/evidence/plots/NAME.png`.

It takes the first chart, or the first of the section that `--section` names, drawn by Chromium as readers see it.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH = 860
"""Width of the window in pixels; the picture has twice as many."""


def save_chart(report: Path, picture: Path, section: str | None = None) -> None:
    """Open a report, and save one of its charts with title, axes and legend."""
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900}, device_scale_factor=2, color_scheme="light"
        )
        page.goto(report.resolve().as_uri(), timeout=120_000)
        page.add_style_tag(content="figure details, figure button { visibility: hidden }")
        place = page.locator("main, body").first
        if section is not None:
            place = page.locator("section", has=page.get_by_role("heading", name=section, exact=True))
        chart = place.locator("figure", has=page.locator(".chart svg")).first
        picture.parent.mkdir(parents=True, exist_ok=True)
        chart.screenshot(path=picture, animations="disabled")
        browser.close()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--section", help="heading of the section; by default the first with a chart")
    asked = parser.parse_args()
    save_chart(asked.report, asked.picture, asked.section)


if __name__ == "__main__":
    main()
