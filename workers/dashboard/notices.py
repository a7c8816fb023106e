"""Notices of the page: what a feed's verdict cannot say, for there is no feed, or no Redis."""

import time

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
