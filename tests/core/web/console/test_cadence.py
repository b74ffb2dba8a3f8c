"""When a schedule runs, in words."""

from __future__ import annotations

import pytest

from tocsin.web.console.cadence import describe_cron


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 2 * * *", "every day at 02:00"),
        ("@daily", "every day at 00:00"),
        ("@hourly", "every hour"),
        ("30 * * * *", "every hour at minute 30"),
        ("0 */2 * * *", "every 2 hours"),
        ("*/15 8-18 * * mon-fri", "Monday to Friday every 15 minutes from 08:00 to 18:59"),
        ("0 6,18 * * 1,3,7", "on Monday, Wednesday and Sunday at 06:00 and 18:00"),
        ("0 6 L * *", "on the last day of each month at 06:00"),
        ("0 9 1,15 * *", "on days 1 and 15 of each month at 09:00"),
        ("* * * * *", "every minute"),
        ("@weekly", "on Sunday at 00:00"),
        # what is better read as it is
        ("*/7 * * * *", None),
        ("0 9 1,15 * mon", None),
        ("@yearly", None),
        ("0 9 * * mon#1", None),
        ("0,30 9 * * *", None),
        ("0 9 */2 * *", None),
    ],
)
def test_a_cron_expression_is_told_in_words_where_few_are_enough(cron, words):
    assert describe_cron(cron) == words
