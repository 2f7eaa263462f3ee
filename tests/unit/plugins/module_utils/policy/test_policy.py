# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions about keys by a policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._policy.policy import (
    Allowed,
    Policy,
    Review,
    allowed_from,
    review,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# In Go, in Unix, and on file systems with FAT.
ZERO_TIMES = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00", "1980-01-01T00:00:00Z")
NO_LIMITS = Policy(None, None, None, None, HOUR)


def key(
    key_id: int, name: Any = "deploy", age: timedelta = 10 * DAY, idle: timedelta | None = 2 * HOUR
) -> dict[str, Any]:
    """A key of this age, last used C(idle) ago (None: never used)."""
    used_at = None if idle is None else (EPOCH - idle).isoformat()
    return {"id": key_id, "name": name, "created_at": (EPOCH - age).isoformat(), "last_used_at": used_at}


CREATED = (EPOCH - 10 * DAY).date()
OLD = key(1, idle=5 * HOUR)


def found(keys: list[dict[str, Any]], **policy: Any) -> list[tuple[str, int | None]]:
    """The kinds of findings, each with the id of the key."""
    return [(each.kind, each.key and each.key["id"]) for each in reviewed(keys, **policy).findings]


def reviewed(keys: list[dict[str, Any]], **policy: Any) -> Review:
    return review(keys, NO_LIMITS._replace(**policy), EPOCH)


@pytest.mark.parametrize(
    "pattern, name, matches",
    [
        ("deploy", "deploy", True),
        *(("deploy", name, False) for name in ("deploy2", "Deploy", "deploy\n")),
        ("deploy.web", "deployxweb", False),
        ("deploy-*", "deploy-web\nnext line", True),
        *(("deploy-?", "deploy-1", True), ("deploy-?", "deploy-12", False)),
        ("web[!12]", "web2", False),
        ("*", "", True),
        # One character, or a letter and an accent.
        ("caf\u00e9", "cafe\u0301", True),
        ("cafe\u0301-?", "caf\u00e9-1", True),
    ],
)
def test_names(pattern: str, name: str, matches: bool) -> None:
    kinds = found([key(1, name)], allowed=[Allowed(pattern), Allowed("declared"), Allowed("*?never")])
    assert (("unknown", 1) in kinds) is not matches


@pytest.mark.parametrize("pattern, name", [("[[]", "["), ("[*]", "*"), ("[]]", "]"), ("[!]]", "a"), ("[!\n]", "b")])
def test_character_in_brackets_stands_for_itself(pattern: str, name: str) -> None:
    assert found([key(1, name)], allowed=[Allowed(pattern)]) == []
    assert found([key(1, "deploy")], allowed=[Allowed(pattern), Allowed("deploy")]) == []


@pytest.mark.parametrize("name", ["web[1]", "caf\u00e9[1]"])
def test_a_key_whose_name_is_declared_as_it_is_is_known(name: str) -> None:
    assert found([key(1, name)], allowed=[Allowed(name)]) == []


def test_first_match_applies() -> None:
    allowed = [Allowed("deploy-web", owner="web team"), Allowed("deploy-*", max_keys=1, owner="others")]
    keys = [key(1, "deploy-web"), key(2, "deploy-db"), key(3, "deploy-mail", idle=HOUR)]
    [finding] = reviewed(keys, allowed=allowed).findings
    assert (finding.kind, finding.key) == ("over_limit", keys[1])
    is_one = "deploy-db (id 2) is one of 2 keys that match 'deploy-*', more than max_keys of 1."
    assert finding.message == f"{is_one} Owner: others."


def test_missing_keys_are_those_with_an_exact_name() -> None:
    missing = Allowed("backup", owner="Ann.", reason="nightly\x1b..")
    allowed = [Allowed("deploy-*"), Allowed("deploy-web"), missing, Allowed("a?")]
    [finding] = reviewed([key(1, "deploy-web")], allowed=allowed).findings
    assert (finding.kind, finding.name) == ("missing", "backup")
    assert finding.message == "There is no key named 'backup'. Owner: Ann. Reason: nightly\\x1b."


@pytest.mark.parametrize(
    "policy, keys, kind, text",
    [
        ({"max_age": DAY}, [key(1)], "expired", f"was created on {CREATED}, longer ago than max_age"),
        ({"max_idle": HOUR}, [key(1)], "idle", f"was last used on {EPOCH.date()}, longer ago than max_idle"),
        ({}, [key(1, idle=None)], "never_used", f"was created on {CREATED} and never used"),
        (
            {},
            [OLD, key(2)],
            "duplicate",
            "is one of 2 keys of that name, and not the one that was created or used last",
        ),
        ({"max_keys": 1}, [OLD, key(2, "b")], "over_limit", "is one of 2 keys of the account, more than max_keys of 1"),
    ],
)
def test_a_finding_has_the_entry_of_its_key(policy: dict[str, Any], keys: list[Any], kind: str, text: str) -> None:
    entry = Allowed("*", owner="Ann")
    [finding] = reviewed(keys, allowed=[entry], **policy).findings
    assert (finding.kind, finding.allowed) == (kind, entry)
    assert finding.message == f"deploy (id 1) {text}. Owner: Ann."


def test_surplus_keys_are_revoked_last() -> None:
    """They may no longer be surplus by then."""
    keys = [key(1, "a", idle=9 * DAY), key(2, "a", idle=3 * DAY), key(3, "b", age=40 * DAY, idle=HOUR)]
    result = reviewed(keys, max_age=30 * DAY)
    assert [each["id"] for each in result.due(["duplicate", "expired"])] == [3, 1]


@pytest.mark.parametrize(
    "policy, a_key, kinds",
    [
        ({"max_age": 10 * DAY - timedelta(seconds=1)}, key(1), ["expired"]),
        ({"max_idle": 2 * HOUR}, key(1), []),
        ({"max_idle": HOUR}, key(1, idle=None), ["never_used"]),
        ({}, key(1, idle=None), ["never_used"]),
        ({"grace": 20 * DAY}, key(1, idle=None), []),
        ({"grace": timedelta(0)}, key(1, age=timedelta(seconds=1), idle=None), ["never_used"]),
        ({"max_age": HOUR, "max_idle": HOUR}, key(1), ["expired", "idle"]),
        ({"max_age": HOUR, "max_idle": HOUR}, key(1, age=-DAY, idle=-DAY), []),
    ],
)
def test_ages(policy: dict[str, Any], a_key: dict[str, Any], kinds: list[str]) -> None:
    assert found([a_key], **policy) == [(kind, 1) for kind in kinds]


@pytest.mark.parametrize("zero", ZERO_TIMES)
def test_what_stands_for_no_time_is_no_age(zero: str) -> None:
    """https://github.com/coder/coder/pull/28453"""
    limits: dict[str, Any] = {"max_age": 90 * DAY, "max_idle": 30 * DAY}
    assert found([key(1) | {"created_at": zero}], **limits) == []
    assert found([key(1) | {"created_at": zero, "last_used_at": zero}], **limits) == []
    assert found([key(1) | {"last_used_at": zero}], **limits) == [("never_used", 1)]


@pytest.mark.parametrize(
    "idle_hours, allowed, kinds",
    [
        ([5, 6, 7], None, [("duplicate", 2), ("duplicate", 3)]),
        *((hours, None, [("duplicate", 1), ("duplicate", 2)]) for hours in ([7, 6, 5], [5, 5, 5])),
        ([5, 6, 7], [Allowed("dep*", 3)], []),
        ([5, 6, 7], [Allowed("dep*", 2)], [("over_limit", 3)]),
    ],
)
def test_surplus_keys_are_those_of_the_earliest_activity(idle_hours: list[int], allowed: Any, kinds: Any) -> None:
    keys = [key(number, idle=hours * HOUR) for number, hours in enumerate(idle_hours, 1)]
    assert found(keys, allowed=allowed) == kinds


def test_limit_of_the_account_counts_keys_over_another_limit_once() -> None:
    keys = [key(number, f"web{number}", idle=number * HOUR) for number in range(1, 5)]
    keys += [key(5, "ci", idle=50 * HOUR), key(6, "ci", idle=60 * HOUR)]
    limits: dict[str, Any] = {"allowed": [Allowed("ci", 1), Allowed("web*")], "max_keys": 5}
    assert found(keys, **limits) == [("over_limit", 6)]
    assert found(keys, **{**limits, "max_keys": 4}) == [("over_limit", 5), ("over_limit", 6)]
    message = reviewed(keys, max_keys=4).findings[-1].message
    assert message == "ci (id 6) is one of 6 keys of the account, more than max_keys of 4."


NO_TIMES = "The service sent no valid created_at and last_used_at, so it is not known when the key was last used."
NO_NAME = "The service sent no name."
GRACE_PERIOD = "It was created or used within the grace period."


@pytest.mark.parametrize(
    "a_key, reason",
    [
        *((each, None) for each in (key(1), key(1, idle=None), key(1, idle=None) | {"last_used_at": ""})),
        *((each, GRACE_PERIOD) for each in (key(1, idle=HOUR), key(1, age=HOUR, idle=None))),
        *((key(1) | {"last_used_at": time}, None) for time in ZERO_TIMES),
        *((key(1) | {"created_at": time}, NO_TIMES) for time in ZERO_TIMES),
        # A use before the creation is none.
        (key(1, idle=20 * DAY), NO_TIMES),
        *((key(1) | field, NO_TIMES) for field in ({"created_at": None}, {"last_used_at": "yesterday"})),
        ({"id": 1, "name": "deploy", "created_at": key(1)["created_at"]}, NO_TIMES),
        *((key(1, name), NO_NAME) for name in (None, "")),
    ],
)
def test_protected_keys(a_key: dict[str, Any], reason: str | None) -> None:
    protected = reviewed([a_key], max_age=timedelta(seconds=1)).protected
    assert protected == ({1: reason} if reason else {})


@pytest.mark.parametrize("field", ["created_at", "last_used_at"])
@pytest.mark.parametrize("value", [None, "soon"])
def test_key_with_an_unknown_time_costs_no_other_key(field: str, value: Any) -> None:
    """With the limit of 2, one of the known keys is surplus in any case if there are three, and none for sure if there are two."""
    unknown = key(9) | {field: value}
    keys = [key(1, idle=4 * HOUR), key(2, idle=3 * HOUR), unknown]
    limit: dict[str, Any] = {"allowed": [Allowed("deploy", 2)]}
    result = reviewed(keys, **limit)
    assert (9 in result.protected) is ((field, value) != ("last_used_at", None))
    if 9 in result.protected:
        assert found(keys, **limit) == [("over_limit", 9)]
        assert found([*keys, key(3)], **limit) == [("over_limit", 1), ("over_limit", 9)]


def test_findings_are_sorted_by_kind_and_name() -> None:
    kinds = found([key(1, "b"), key(2, "a")], allowed=[Allowed("z")], max_age=DAY)
    assert kinds == [("unknown", 2), ("unknown", 1), ("expired", 2), ("expired", 1), ("missing", None)]


@pytest.mark.parametrize(
    "entries",
    [
        *([], [{"name": " "}], [{"name": "a", "max_keys": 0}]),
        *([{"name": "a"}, {"name": "a"}], [{"name": "caf\u00e9"}, {"name": "cafe\u0301"}]),
        # A bracket that is not closed, and brackets that shells read differently.
        *([{"name": name}] for name in ("[", "pol[1-", "web[12]-[", "[!]", "[]b")),
        *([{"name": name}] for name in ("web-[^0-9]", "db-[a[:digit:]]", "[[.a.]]", "x[[=a=]]", "[!^][^!]")),
    ],
)
def test_invalid_entries(entries: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidOption) as error:
        allowed_from(entries)
    assert error.value.details == {"option": "allowed"}
