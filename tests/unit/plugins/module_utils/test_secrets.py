# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is masked in data and in texts, and what stays readable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._secrets import (
    MASK,
    Masker,
    encodings,
    masked,
    masked_text,
    may_hold_secrets,
    secret_texts,
)

SECRET = "hunter2-hunter2"
URI = f"postgresql://app:{SECRET}@host/db"


@pytest.mark.parametrize(
    "value",
    [
        *(
            {name: SECRET}
            for name in ("key", "connection_uri", "connectionString", "accessToken", "X-Auth-Token", "api_key")
        ),
        {"role": {"name": "app", "password": SECRET}},
        *({"connection_uri": URI}, {"connection_uris": [URI]}),
        {"connection_uris": [{"connection_parameters": {"password": SECRET, "host": "h"}}]},
        {"passwords": [SECRET, {"a": SECRET}]},
        {"api_keys": [{"id": 7, "value": SECRET}]},
        {"custom": {"name": SECRET, "nested": [{"deep": SECRET}]}},
        {"key": 123456789},
        {"message": f"the role app has {SECRET}"},
    ],
)
def test_every_secret_is_masked(value: Any) -> None:
    shown = json.dumps(masked(value, ["custom"], [SECRET]))
    assert MASK in shown and SECRET not in shown and "123456789" not in shown
    assert may_hold_secrets(json.dumps(value).encode(), [SECRET]) or "custom" in value


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"passwordless_access": True, "password": None, "key": "", "password_set": True},
        {"name": "key", "keys": 3, "keyboard": "x", "uri": "https://host/path?x=1", "monkey": "y"},
        {"pagination": {"cursor": "token=2026-11-21T08:00:00Z"}},
        {"token_id": "tok-1", "secret_ids": ["a"], "token_id_short": "t", "token_count": 5, "passed": "all"},
        {"password_updated_at": "2026-11-21T08:00:00Z", "password_encryption": "scram-sha-256", "tokenizer": "x"},
        {"api_keys": [{"id": 7, "name": "ci", "created_at": "x", "last_used_from_addr": "192.0.2.7"}]},
        {"time": "12:30@noon", "mail": "a@b.example.com"},
        # Only errors quote the values of others.
        {"name": SECRET, "owner": f"{SECRET}-42"},
    ],
)
def test_the_rest_stays_as_it_is(value: Any) -> None:
    assert masked(value, [], [SECRET]) == value


def test_a_key_is_masked_everywhere() -> None:
    shown = masked({f"a {SECRET}": 1, "name": f"b {SECRET}", 7: [f"c {SECRET}"]}, keys=[SECRET])
    assert shown == {f"a {MASK}": 1, "name": f"b {MASK}", 7: [f"c {MASK}"]}


PASSWORDS = ["p", "p/w", "p@w", "p?w", "p#w", "p w", "p?a=b", "p:w", "1/2", '"p"', "p w/x@y z"]
WITHOUT_SECRETS = [
    "https://example.com: not found, mail a@b.example.com",
    "https://registry:5000/image@sha256:abc and https://h:8080.",
    "postgres://h:5432/db failed, mail admin@example.com",
    "postgres://app@h:5432/db?opt=a@b, ssh://git@example.com/x",
    '{"url":"https://example.com","mail":"a@b.example.com"}',
    "duplicate key=5, token_count=7, passed=3",
    "Unexpected token '<', secret 'db-credentials' not found",
    "password authentication failed for user 'u'",
    "the password is too short",
]


# From public reports: what drivers and their users quote.
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, text) for text in WITHOUT_SECRETS),
        # The password of an address ends at the last at sign.
        *((f"to postgres://u:{password}@h:5432/db", f"to postgres://u:{MASK}@h:5432/db") for password in PASSWORDS),
        # PostgREST/postgrest#1531, #2658
        ("postgres://my_user:some cool/password@pg-host:5432/my-db", f"postgres://my_user:{MASK}@pg-host:5432/my-db"),
        ('name "Ojy233@localhost" to address', 'name "Ojy233@localhost" to address'),
        ('not translate host name "Ojy233@localhost" to', f'not translate host name "{MASK}@localhost" to'),
        ('invalid integer value "some cool" for connection', f'invalid integer value "{MASK}" for connection'),
        # k1LoW/tbls#348, jazzband/dj-database-url#224
        ('parse "postgres://user:pass": invalid port ":pass" after', f'parse "postgres://user:{MASK}": invalid port "{MASK}" after'),
        ("Port could not be cast to integer value as 'pass'", f"Port could not be cast to integer value as '{MASK}'"),
        # encode/databases#409, prisma/orm#2000, brianc/node-postgres#3013
        ("postgresql://postgres:_I=d-6S8B$avgXtFN?@U-+0!@z3.io:5432/a", f"postgresql://postgres:{MASK}@z3.io:5432/a"),
        (r"postgresql://postgres:{aa-11-a,1a\|a)1#1(#*1@a.com:5432", f"postgresql://postgres:{MASK}@a.com:5432"),
        ("postgres://test:abc/@mydb.de:5432/mydb", f"postgres://test:{MASK}@mydb.de:5432/mydb"),
        # pgrundev/pgbot#53, confluentinc/kafka-connect-jdbc#1196, databricks/databricks-jdbc#1136
        ("postgres://u@db:5432/a?password=x&sslmode=y", f"postgres://u@db:5432/a?password={MASK}&sslmode=y"),
        ("jdbc:postgresql://db/a?username=u&password=x&s=y", f"jdbc:postgresql://db/a?username=u&password={MASK}&s=y"),
        ("jdbc:databricks://h:443/d;PWD=x&y;UID=u", f"jdbc:databricks://h:443/d;PWD={MASK};UID=u"),
        # PowerDNS/pdns#459, signalwire/freeswitch#2373, MapServer/MapServer#6784
        ("user=u port=5432 password=L3AkTh3Da1a: refused", f"user=u port=5432 password={MASK}: refused"),
        (r"dbname=f password='12\'34 5' options='-c'", f"dbname=f password='{MASK}' options='-c'"),
        ("'SERVER=(local);uid=sa;pwd=Password12!;'.", f"'SERVER=(local);uid=sa;pwd={MASK};'."),
        # cloudnative-pg/cloudnative-pg#9799, HexaCluster/credcheck#13
        ("CREATE ROLE a ENCRYPTED PASSWORD 'x' VALID", f"CREATE ROLE a ENCRYPTED PASSWORD '{MASK}' VALID"),
        ("login password 'hfb&#%$' VALID UNTIL '2023'", f"login password '{MASK}' VALID UNTIL '2023'"),
        # JSON within a text, signed addresses, and several secrets
        ('invalid: {"user":"u","password":"p\\"w","x":1}', f'invalid: {{"user":"u","password":"{MASK}","x":1}}'),
        ("https://h/o?X-Amz-Date=1&X-Amz-Signature=x&a=b", f"https://h/o?X-Amz-Date=1&X-Amz-Signature={MASK}&a=b"),
        ("HTTPS://h?SIG=x https://h?access_token=x&key=y", f"HTTPS://h?SIG={MASK} https://h?access_token={MASK}&key={MASK}"),
        ("postgres://u:p@h1,postgres://u:p@h2", f"postgres://u:{MASK}@h1,postgres://u:{MASK}@h2"),
        ("redis://:p@h see https://h/help", f"redis://:{MASK}@h see https://h/help"),
        ("me@corp: postgres://me@corp:p@h/db?user=a@b&sslpassword=x", f"me@corp: postgres://me@corp:{MASK}@h/db?user=a@b&sslpassword={MASK}"),
    ],
)  # fmt: skip
def test_secrets_in_texts(text: str, shown: str) -> None:
    assert masked_text(text) == shown
    assert masked_text(shown) == shown
    assert text == shown or may_hold_secrets(json.dumps(text).encode(), [])


def test_secrets_within_each_other_are_masked_completely() -> None:
    for longer in (f"{SECRET}-2", f"a-{SECRET}"):
        assert masked_text(f"{longer} and {SECRET}", [SECRET, longer]) == f"{MASK} and {MASK}"


def test_the_secrets_of_a_body_are_known() -> None:
    body = {"role": {"name": "app", "password": SECRET}, "pin": 123456, "token": "short"}
    assert secret_texts(body, ["pin"]) == {SECRET, "123456"}
    assert secret_texts(None) == set()


@pytest.mark.parametrize(
    "secrets, text, shown",
    [
        # Text may contain one that is so short.
        (["a" * 5, "b" * 6], f"{'a' * 5} {'b' * 6}", f"{'a' * 5} {MASK}"),
        # The password of an address.
        (["postgres://owner:p%40ss-word@host/db", "postgres://[host/db"], "p@ss-word, p%40ss-word", f"{MASK}, {MASK}"),
        # Ansible would mask the lines of asterisks in its output.
        ([MASK], MASK, MASK),
    ],
)
def test_secrets_to_hide(secrets: list[str], text: str, shown: str) -> None:
    masker = Masker()
    masker.hide(*secrets)
    assert masker.text(text) == shown
    assert MASK not in masker.secrets


def test_encodings_of_a_key() -> None:
    assert encodings("\"a/\\b'") == {"\"a/\\b'", "\\\"a/\\\\b'", "%22a/%5Cb%27", "%22a%2F%5Cb%27", "\"a/\\\\b\\'"}
    assert "\ud800" in encodings("\ud800")
