"""What tests of the page do on it, and read off it."""

import re
import shutil
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

expect.set_options(timeout=20_000)  # machines may be busy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; `make browser` installs it")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync"]
ARABIC, THAI = "داكار هي عاصمة السنغال.", "ดาการ์เป็นเมืองหลวงของประเทศเซเนกัล"
WOLOF = "Dakar mooy péeyu Senegaal. Dafa rafet."


def visit(page: Page, cell: str, text: str, mode: str = "averaged", **more: str) -> None:
    state = {"cell": cell, **more, "mode": mode, "text": text}
    page.goto("/#" + "&".join(f"{name}={quote(value)}" for name, value in state.items()))
    cells = " and ".join([cell, *more.values()])
    expect(page.locator("#status")).to_contain_text(f"Tagged in {cells}, {'post' if mode == 'plug-in' else mode}")
    expect(page.locator(".word")).not_to_have_count(0)


def serious(page: Page, **options) -> list[str]:
    """Violations of axe's rules of serious or critical impact."""
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']}: {rule['nodes'][0]['html'][:200]} {rule['nodes'][0]['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def wait_until(page: Page, holds: str) -> None:
    """Wait for a function of JavaScript to return true; the page's policy forbids playwright's own way to do so."""
    for _ in range(400):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within 20 seconds: {holds}")


def words(page: Page, panel: str = "a") -> list[str]:
    return page.locator(f".tagging.{panel} .word .form").all_inner_texts()


def labels(page: Page, panel: str = "a") -> list[str]:
    said = page.locator(f".tagging.{panel} .word").evaluate_all("all => all.map(word => word.ariaLabel)")
    return [text.rpartition(": ")[2].rpartition(",")[0] for text in said]


def alike(given: str, expected: str) -> bool:
    """Whether two texts are the same but for the last digit of numbers, which were rounded on their way."""
    number = re.compile(r"\d\.\d+(?:e-\d+)?")
    pairs = zip(number.findall(given), number.findall(expected), strict=True)
    return number.sub("#", given) == number.sub("#", expected) and all(
        abs(float(one) - float(other)) < 1.1e-4 for one, other in pairs
    )
