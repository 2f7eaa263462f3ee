# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stores of the examples, each with one interface for the tests."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.vault import VaultLib, VaultSecret
from fake_service import TOKEN
from github_api import REPOSITORY, GithubApi
from kubernetes_api import KubernetesApi
from openbao import OpenBao

VAULT_PASSWORD = "password-of-the-repository"
VARIABLES = """\
# The settings of the shop.
shop_url: https://shop.example.com

clouddb_api_key: ""   # in \\1 and \\n
shop_password: {password}

# Trailing spaces, tabs and the last line have no meaning, but stay.  \t
shop_regions: [eu, us]"""


VAULT = VaultLib([("default", VaultSecret(VAULT_PASSWORD.encode()))])


class DecryptingLoader(yaml.SafeLoader):
    """Decrypts the values that ansible-vault has encrypted."""


DecryptingLoader.add_constructor("!vault", lambda loader, node: VAULT.decrypt(node.value).decode())


def encrypted(secret: str) -> str:
    """The value of a variable, as ``ansible-vault encrypt_string`` prints it."""
    return "!vault |\n" + textwrap.indent(VAULT.encrypt(secret).decode().rstrip("\n"), 10 * " ")


class StoreOfKey:
    """Where an example keeps the key, beside another value.

    C(playbook) is the example, C(env) the environment that selects the store, C(settings) the variables that do. Each store has
    key(), the stored key or None; put_key(), as the user stored a key before the first rotation; others(), everything else in it;
    writes(), which changes with each write; and reject_writes(), after which each write fails.
    """

    playbook = ""
    # Whether the previous key can be read, so that the roll-back can restore it whatever the job has.
    is_readable = True

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.settings: dict[str, Any] = {}
        self.update_tasks = self.playbook.replace("rotate_", "tasks/update_")

    def job(self) -> dict[str, str]:
        """The variables that the environment of a job has from the store."""
        return {}


class VaultedVariable(StoreOfKey):
    """A variable of a repository that ansible-vault encrypts."""

    playbook = "rotate_vaulted_variable.yml"

    def __init__(self, folder: Path, scratch: Path) -> None:
        super().__init__()
        password_file = scratch / "vault_password"
        password_file.write_text(f"{VAULT_PASSWORD}\n", encoding="utf-8")
        self.env = {"ANSIBLE_VAULT_PASSWORD_FILE": str(password_file)}
        self._folder = folder
        self.file = folder / "group_vars" / "all" / "clouddb.yml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(VARIABLES.format(password=encrypted("open sesame")), encoding="utf-8")
        self.git("init", "--quiet")
        self.git("config", "user.email", "user@example.com")
        self.git("config", "user.name", "User")
        self.commit()

    def git(self, *arguments: str) -> str:
        return subprocess.check_output(["git", *arguments], cwd=self._folder, text=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Rotate the key")

    def key(self) -> str | None:
        return self._variables()["clouddb_api_key"] or None

    def put_key(self, secret: str) -> None:
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text.replace('""   # in \\1 and \\n', encrypted(secret)), encoding="utf-8")
        self.commit()

    def others(self) -> object:
        """The other variables, and the lines without the value of the key."""
        before, _name, rest = self.file.read_text(encoding="utf-8").partition("clouddb_api_key:")
        _value, name, after = rest.partition("shop_password:")
        return before, name + after, self._variables()["shop_password"]

    def writes(self) -> object:
        return self.file.read_bytes()

    def reject_writes(self) -> None:
        # A file without the variable, because root may write to all files.
        self.settings["clouddb_vars_file"] = str(self._folder / "group_vars" / "all" / "other.yml")
        Path(self.settings["clouddb_vars_file"]).write_text("other: value\n", encoding="utf-8")

    def _variables(self) -> dict[str, Any]:
        variables: dict[str, Any] = yaml.load(self.file.read_bytes(), DecryptingLoader)
        return variables


class KvSecret(StoreOfKey):
    """A secret of OpenBao."""

    playbook = "rotate_hashi_vault_secret.yml"

    def __init__(self, bao: OpenBao, path: str) -> None:
        super().__init__()
        self.bao, self.path = bao, path
        self.env = {"VAULT_ADDR": bao.url, "VAULT_TOKEN": bao.token(path, "create", "read", "update")}
        self.settings = {"clouddb_kv_path": path}
        bao.put(path, password="open sesame")

    def key(self) -> str | None:
        return self.bao.read(self.path).get("api_key")

    def put_key(self, secret: str) -> None:
        self.bao.put(self.path, api_key=secret)

    def others(self) -> object:
        return {field: value for field, value in self.bao.read(self.path).items() if field != "api_key"}

    def writes(self) -> object:
        return self.bao.version(self.path)

    def reject_writes(self) -> None:
        self.env["VAULT_TOKEN"] = self.bao.token(self.path, "read")


class KubernetesSecret(StoreOfKey):
    """A secret of Kubernetes."""

    playbook = "rotate_kubernetes_secret.yml"

    def __init__(self, api: KubernetesApi) -> None:
        super().__init__()
        self.api = api
        self.env = {"K8S_AUTH_HOST": api.url, "K8S_AUTH_API_KEY": TOKEN}
        api.put("default", "clouddb", password="open sesame")

    def key(self) -> str | None:
        return self.api.data("default", "clouddb").get("api_key")

    def put_key(self, secret: str) -> None:
        self.api.put("default", "clouddb", api_key=secret)

    def others(self) -> object:
        return {field: value for field, value in self.api.data("default", "clouddb").items() if field != "api_key"}

    def writes(self) -> object:
        return self.api.writes()

    def reject_writes(self) -> None:
        self.api.rejects_writes = True


class GithubSecret(StoreOfKey):
    """A secret of GitHub Actions."""

    playbook = "rotate_github_secret.yml"
    is_readable = False

    def __init__(self, api: GithubApi) -> None:
        super().__init__()
        self.api = api
        self.env = {"GITHUB_API_URL": api.url, "GITHUB_REPOSITORY": REPOSITORY, "GH_TOKEN": TOKEN}
        api.secrets["OTHER"] = "open sesame"

    def key(self) -> str | None:
        return self.api.secrets.get("CLOUDDB_API_KEY")

    def job(self) -> dict[str, str]:
        return {name: value for name, value in self.api.secrets.items() if name.startswith("CLOUDDB_API_KEY")}

    def put_key(self, secret: str) -> None:
        self.api.secrets["CLOUDDB_API_KEY"] = secret

    def others(self) -> object:
        return {name: value for name, value in self.api.secrets.items() if not name.startswith("CLOUDDB_API_KEY")}

    def writes(self) -> object:
        return self.api.writes()

    def reject_writes(self) -> None:
        self.api.rejects_writes = True


Store = VaultedVariable | KvSecret | KubernetesSecret | GithubSecret
