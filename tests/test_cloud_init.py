"""User-data for new machines: against cloud-init's own schema, and against what it must not hold.

tests/schemas/cloud-config.json is schema-cloud-config-v1.json of cloud-init 26.2 (Apache 2.0).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from paribus.cluster.cloud_init import (
    KEYS,
    PACKAGES,
    Wanted,
    check_user,
    public_key,
    user_data,
)
from paribus.core import UserError
from paribus.studyfile.load import load_study
from processes import needs, ran
from studies import paribus

UNPACKED = Path(os.environ.get("PARIBUS_TEST_CLOUD_INIT", "/opt/paribus-tests/cloud-init"))
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "cloud-config.json").read_text())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFsi/Jgs4/r2vLkoF9+EzLrnjroFcyB3dxL7zWe1AmLv me@here"
OPTIONS = ("--user", "me", "--key", "key.pub")


def make_key(folder: Path) -> None:
    needs("ssh-keygen")
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")]
    subprocess.run(words, check=True)


@pytest.mark.parametrize("distribution", PACKAGES)
@pytest.mark.parametrize("mpi", PACKAGES["debian"])
@pytest.mark.parametrize("host_key", [None, ("-----BEGIN\nx\n", KEY)])
def test_user_data_is_valid_and_lets_no_password_in(
    distribution: str, mpi: str, host_key: tuple[str, str] | None
) -> None:
    text = user_data(Wanted("me", (KEY,), distribution, mpi), host_key)
    assert text.startswith("#cloud-config\n")
    table = yaml.safe_load(text)
    jsonschema.Draft4Validator(SCHEMA).validate(table)
    assert table.keys() <= KEYS
    assert SCHEMA["properties"].keys() >= KEYS
    assert table["ssh_pwauth"] is False
    assert table["disable_root"] is True
    default, user = table["users"]
    assert default == "default"
    assert user["lock_passwd"] is True
    assert user["ssh_authorized_keys"] == [KEY]
    assert "sudo" not in user
    assert ("PRIVATE" in text or "BEGIN" in text) == bool(host_key)


def test_the_schema_refuses_what_it_should() -> None:
    table = yaml.safe_load(user_data(Wanted("me", (KEY,))))
    several: tuple[dict[str, object], ...] = (
        {"runcmds": []},
        {"packages": "openmpi"},
        {"users": [{"nam": "me"}]},
    )
    for wrong in several:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft4Validator(SCHEMA).validate({**table, **wrong})


def cloud_init() -> tuple[list[str], dict[str, str]]:
    """Return how cloud-init is called: the one that is installed, or that .ci/run unpacked."""
    if found := shutil.which("cloud-init"):
        return [found], {}
    if not UNPACKED.is_dir():
        pytest.skip("cloud-init is not installed")
    words = ["/usr/bin/python3", str(UNPACKED / "usr/bin/cloud-init")]
    return words, {"PYTHONPATH": str(UNPACKED / "usr/lib/python3/dist-packages")}


def test_cloud_init_itself_finds_user_data_valid(tmp_path: Path) -> None:
    command, more = cloud_init()
    env = {**os.environ, **more}

    def refused(text: str) -> str:
        path = tmp_path / "user-data"
        path.write_text(text)
        words = [*command, "schema", "--config-file", str(path)]
        done = ran(words, env=env)
        return done.stderr + done.stdout if done.returncode else ""

    make_key(tmp_path)
    pair = (tmp_path / "key").read_text(), KEY
    for distribution in PACKAGES:
        for host_key in (None, pair):
            text = user_data(Wanted("me", (KEY,), distribution), host_key)
            assert refused(text) == ""
    assert "runcmd" in refused(f"{text}\nruncmd: [[1]]\n")


@given(st.text(max_size=60))
@example("PRIVATE KEY")
def test_only_a_public_key_is_taken(comment: str) -> None:
    """Whatever stands behind it is one line, or refused."""
    try:
        kept = public_key(f"{KEY} {comment}\n", "key.pub")
    except UserError:
        assert not f"{KEY} {comment}".strip().isprintable()
    else:
        table = yaml.safe_load(user_data(Wanted("me", (kept,))))
        assert table["users"][1]["ssh_authorized_keys"] == [kept]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not one public key"),
        (f"{KEY}\n{KEY}\n", "not one public key"),
        ("ssh-ed25519 AAAA me", "not one public key"),
        (KEY.replace("ssh-ed25519 ", "ssh-rsa "), "not one public key"),
        (f'command="rm -rf /" {KEY}', "not one public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\n", "is a private key"),
    ],
)
def test_what_is_no_public_key_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        public_key(text, "key.pub")
    assert said in refused.value.cause


def test_names_that_machines_refuse_are_refused() -> None:
    for name in ("root", "Me", "a b", "-x", "", "x" * 33, "a\nb"):
        with pytest.raises(UserError):
            check_user(name)


def test_more_than_providers_take_is_refused() -> None:
    with pytest.raises(UserError, match="where providers take 16,384"):
        user_data(Wanted("me", (KEY,) * 200))


def test_one_file_for_all_nodes_without_a_secret(tmp_path: Path) -> None:
    make_key(tmp_path)
    done = paribus("cluster", "cloud-init", "node[1-3]", *OPTIONS, cwd=tmp_path, code=0)
    assert "compare the fingerprints" in done.stdout
    folder = tmp_path / "cluster-node-1-3"
    assert [one.name for one in folder.iterdir()] == ["user-data"]
    assert (tmp_path / "key.pub").read_text().strip() in (folder / "user-data").read_text()
    again = paribus("cluster", "cloud-init", "node[1-3]", *OPTIONS, cwd=tmp_path, code=2)
    assert "is there already" in again.stderr


def test_pinned_host_keys_are_those_of_known_hosts(tmp_path: Path) -> None:
    make_key(tmp_path)
    words = ("cluster", "cloud-init", "node[1-2]", *OPTIONS, "--pin", "--out", "c")
    done = paribus(*words, cwd=tmp_path, code=0)
    assert "holds a private host key" in done.stderr
    # Without --out `check` would look for the pinned keys in cluster-node-1-2.
    assert "paribus cluster check 'node[1-2]' --user me" in done.stdout
    assert " --out c\n" in done.stdout
    known = dict(
        line.split(" ", 1) for line in (tmp_path / "c" / "known_hosts").read_text().splitlines()
    )
    assert len(set(known.values())) == 2
    for name, public in known.items():
        path = tmp_path / "c" / f"user-data-{name}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        table = yaml.safe_load(path.read_text())
        jsonschema.Draft4Validator(SCHEMA).validate(table)
        private = tmp_path / name
        private.write_text(table["ssh_keys"]["ed25519_private"])
        private.chmod(0o600)
        derived = ran(["ssh-keygen", "-y", "-f", str(private)], code=0)
        assert derived.stdout.split()[:2] == public.split()


def test_the_study_of_the_page_loads(tmp_path: Path) -> None:
    whole = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text()
    page = whole.partition("\n## A cluster in Azure")[2]
    (tmp_path / "azure.toml").write_text(re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)[0])
    arms = load_study(tmp_path / "azure.toml").arms
    assert [arm.hosts.names for arm in arms if arm.hosts] == [("node1", "node2")] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("node1",), "a node needs a user and a public key"),
        (("node1", "--user", "me", "--key", "key"), "is a private key"),
        (("node1", "--user", "me", "--key", "none.pub"), "cannot be read"),
        (("node1", "--user", "root", "--key", "key.pub"), "root does not log in"),
        (("pocket:2", "--key", "key.pub"), "no virtual machines"),
        (("node1", *OPTIONS, "--out", "key/x"), "cannot be written"),
    ],
)
def test_what_makes_no_node_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    make_key(tmp_path)
    done = paribus("cluster", "cloud-init", *words, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert not list(tmp_path.glob("cluster-*"))
