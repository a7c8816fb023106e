"""Debian's Chromium, driven by Playwright, and the page in a process of its own."""

import sys
from contextlib import contextmanager

import orjson
from processes import Process
from system_tools import package, tool

SIZES = {"desktop": (1280, 800), "phone": (390, 844), "narrow": (400, 800)}


def expecting():
    """Return Playwright's `expect`; skip, with the reason, where there is none."""
    expect = package("playwright.sync_api", "pip install -e '.[dev]'").expect
    expect.set_options(timeout=60_000)
    return expect


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    program = tool("chromium", "chromium")
    with sync_playwright() as playwright:
        # As root there is no sandbox. The page under test is our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def violations(page):
    """Return what breaks a rule of WCAG A or AA, by axe-core: rule, place, reason."""
    axe = package("axe_playwright_python.sync_playwright", "pip install -e '.[dev]'").Axe()
    found = axe.run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    return [
        (rule["id"], node["target"], node["failureSummary"])
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]


@contextmanager
def dashboard(url, *arguments):
    """Run `online-svm dashboard` on any free port; yield the address of the page."""
    command = [sys.executable, "-m", "workers.cli", "dashboard", "--redis", url]
    command += ["--port", "0", "--json", *arguments]
    with Process(command, stdout=-1) as process:
        line = process.stdout.readline()
        assert line, "the page did not start"
        yield orjson.loads(line)["url"]
        process.terminate()
        assert process.wait() == 0
        process.stdout.close()


@contextmanager
def tab(browser, address="", size="desktop", scheme="light"):
    """Open a page; yield it. At its end, nothing may stand in the console as an error."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    if address:
        page.goto(address)
    try:
        yield page
    finally:
        context.close()
    assert errors == []
