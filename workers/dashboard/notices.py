"""Notices of the page: there is little to show, or something is wrong."""

import time

from workers.dashboard.feed_view import FeedView
from workers.dashboard.follower import Follower
from workers.dashboard.text import safe, seconds


def lost(follower: Follower) -> str:
    """Return that Redis does not answer; an empty text if it does."""
    if not follower.lost:
        return ""
    since = seconds(max(0.0, time.time() - follower.lost_since))
    return (
        f'<div class="note" role="alert"><b>Redis does not answer, for {since} now.</b> What you '
        f"see is from before. This page tries again each second. {safe(follower.lost, 300)}</div>"
    )


def no_feeds() -> str:
    """Return what to do where there is no feed."""
    return (
        '<p class="empty"><b>No feeds yet.</b> Begin one with <code>online-svm push FEED SOURCE'
        "</code> and <code>online-svm worker FEED</code>. It appears here by itself.</p>"
    )


def unknown(feed: str) -> str:
    """Return that the page does not follow a feed."""
    return (
        f'<p class="empty"><b>No feed {safe(feed)} on this page.</b> A name has 1 to 64 letters, '
        "digits, dots, underscores or hyphens; a page that was started with names shows only "
        "those.</p>"
    )


def of_feed(view: FeedView) -> str:
    """Return what is wrong with a feed; an empty text if nothing is."""
    if view.problem:
        return _note("This feed cannot be read.", safe(view.problem, 300))
    if not view.is_loaded:
        return '<p class="empty">Loading …</p>'
    if not view.exists:
        return _note(
            "There is no such feed now.",
            "It was deleted, or never was. It appears here as soon as examples are pushed to it.",
        )
    if view.holder is None and not view.has_begun:
        return _note(
            "No worker has begun this feed.",
            f"Nothing is answered until one does: <code>online-svm worker {safe(view.feed)}</code>"
            f"{_failure(view)}",
        )
    if view.holder is None:
        return _note(
            "No worker holds this feed.",
            "Nothing is answered until one does: "
            f"<code>online-svm worker {safe(view.feed)}</code>. What was answered is below."
            f"{_failure(view)}",
        )
    return ""


def _failure(view: FeedView) -> str:
    return f" The last one ended with: {safe(view.failure, 300)}" if view.failure else ""


def _note(title: str, words: str) -> str:
    return f'<div class="note" role="status"><b>{title}</b> {words}</div>'
