"""The page in Debian's Chromium: what somebody sees, and that no state of Redis breaks it."""

from dataclasses import asdict

import pytest
from browser import chromium, dashboard, expecting, tab, violations
from fault_redis import Server

from online_svm.stream.alarm import Alarm
from workers.dashboard.page import PICTURES, TABS

expect = expecting()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page_of(embedded_url):
    """Where a page of all feeds of the session's server is."""
    with dashboard(embedded_url) as address:
        yield address


@pytest.fixture
def mail(feeds, embedded_url, feed):
    made = feeds(embedded_url, feed)
    yield made
    made.delete()


def row_of(page, name):
    """Find a row by its link: in its text, `feed-1` and a 5 beside it read like `feed-15`."""
    link = page.get_by_role("link", name=name, exact=True)
    return page.get_by_role("row").filter(has=link)


def test_the_table_leads_to_a_feed_whose_answers_appear_as_they_come_and_back(
    browser, page_of, mail
):
    mail.hold()
    mail.answer()
    mail.report(1)
    with tab(browser, page_of) as page:
        row = row_of(page, mail.name)
        expect(row).to_contain_text("1 answer scored")
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(mail.name)
        expect(page.get_by_text("1 answer scored.")).to_be_visible()
        page.get_by_role("tab", name="Answers").click()
        expect(page.get_by_text("right ham")).to_be_visible()
        mail.answer(label="eggs", y="spam")  # it appears by itself
        expect(page.get_by_text("wrong spam")).to_be_visible()
        page.get_by_role("link", name="all feeds").click()
        expect(row_of(page, mail.name)).to_be_visible()


def test_what_was_chosen_stands_in_the_address_and_is_shown_again(browser, page_of, mail):
    mail.answer()
    for n in (100, 3000):
        mail.answer()
        mail.report(n)
    with tab(browser, f"{page_of}?feed={mail.name}") as page:
        page.get_by_label("Range").select_option("last 1,000 examples")
        page.get_by_label("Along").select_option("time")
        page.wait_for_url("**range=1000**axis=time**")
        page.get_by_role("tab", name="Parts").click()
        page.wait_for_url("**tab=parts**")
        page.reload()
        expect(page.get_by_role("tab", name="Parts")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("heading", name="Classes and slices")).to_be_visible()
        expect(page.get_by_label("Range")).to_have_value("last 1,000 examples")
        expect(page.get_by_label("Along")).to_have_value("time")


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("narrow", "dark")])
def test_nothing_is_wider_than_the_screen_and_the_theme_is_that_of_the_reader(
    browser, page_of, mail, size, scheme
):
    mail.answer()
    mail.report(1)
    with tab(browser, f"{page_of}?feed={mail.name}", size, scheme) as page:
        for name, cards in TABS.items():
            page.get_by_role("tab", name=name).click()
            panel = page.get_by_role("tabpanel")
            expect(panel).to_have_count(1)
            expect(panel.get_by_role("heading", level=2)).to_have_count(len(cards))
            expect(panel.get_by_role("link", name="what it means")).to_have_count(len(cards))
            expect(page.get_by_role("heading", level=2)).to_have_count(len(cards) + len(PICTURES))
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 19, 23)"}[scheme]


def test_the_tabs_are_reached_and_chosen_by_keyboard(browser, page_of, mail):
    mail.answer()
    with tab(browser, f"{page_of}?feed={mail.name}") as page:
        chosen = page.get_by_role("tab", selected=True)
        expect(chosen).to_have_text("Facts")
        expect(page.get_by_role("tab")).to_have_count(len(TABS))
        page.get_by_role("combobox", name="Along").focus()
        for _ in range(40):  # plots and links are on the way
            page.keyboard.press("Tab")
            if chosen.evaluate("one => one.matches(':focus')"):
                break
        for key, name in (
            ("ArrowRight", "Incidents"), ("ArrowLeft", "Facts"), ("ArrowLeft", "Rate and costs"),
            ("Home", "Facts"), ("End", "Rate and costs"), ("ArrowRight", "Facts"),
        ):  # fmt: skip
            page.keyboard.press(key)
            expect(chosen).to_have_text(name)
            expect(chosen).to_be_focused()
            expect(page.get_by_role("tabpanel", name=name)).to_be_visible()


@pytest.mark.parametrize(("size", "scheme"), [
    ("desktop", "light"), pytest.param("narrow", "dark", marks=pytest.mark.slow),
])  # fmt: skip
def test_no_page_breaks_a_rule_of_wcag_a_or_aa(
    browser, page_of, mail, feeds, embedded_url, tmp_path, run_command, size, scheme
):
    late = feeds(embedded_url, f"{mail.name}-2")
    alarm = asdict(Alarm(2, "exchangeability", "overall", None, "ranks", 5.7, 5.3, 1))
    for one in (mail, late):
        one.hold()
        one.answer()
        one.report(1)
        one.answer(y="spam")
        one.report(2, monitors={"open": []})
    late.put(late.keys.alarms, "3000-0", {"v": 2, "seq": 2, "alarms": [alarm]})
    out = tmp_path / "report.html"
    assert run_command("report", mail.name, "--out", str(out), "--redis", embedded_url)[0] == 0
    found = {}
    with tab(browser, "", size, scheme) as page:
        for address in (page_of, f"{page_of}help", out.as_uri()):
            page.goto(address)
            expect(page.get_by_role("heading", level=1).first).to_be_visible()
            found[address] = violations(page)
        page.goto(f"{page_of}?feed={late.name}")
        for name in TABS:
            page.get_by_role("tab", name=name).click()
            expect(page.get_by_role("tabpanel").get_by_role("heading").first).to_be_visible()
            found[name] = violations(page)
    late.delete()
    assert found == {place: [] for place in found}


def test_the_first_feed_appears_by_itself_and_redis_may_go_away_and_come_back(
    browser, tmp_path, feeds
):
    server = Server(tmp_path / "redis")
    with dashboard(server.url) as address, tab(browser, address) as page:
        expect(page.get_by_text("No feeds yet.")).to_be_visible()
        mail = feeds(server.url, "mail")
        mail.answer()
        page.get_by_role("link", name="mail").click()
        page.get_by_role("tab", name="Answers").click()
        expect(page.get_by_text("right ham")).to_be_visible()
        server.kill()
        expect(page.get_by_text("Redis does not answer")).to_be_visible()
        expect(page.get_by_text("right ham")).to_be_visible()
        server.start()
        expect(page.get_by_text("Redis does not answer")).to_be_hidden()
        mail.store.close()
        mail.answer(y="spam")
        expect(page.get_by_text("wrong spam")).to_be_visible()
    server.stop()
