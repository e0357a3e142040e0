"""Folders on disk: their owner, trusted and sealed files, cleaning up."""

from __future__ import annotations

import errno
import os
import time
import warnings

import pytest

from tensorplug.errors import BackendWarning
from tensorplug.system import disk_cache

CACHE = "TENSORPLUG_ACME_CACHE"
NAMES = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", CACHE)
FOLDER = disk_cache.CacheFolder(CACHE, "tensorplug-acme", "programs", ())


@pytest.fixture
def bare(monkeypatch):
    """An environment without settings of folders, and a process that has not warned yet."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(disk_cache, "_refused", set())
    monkeypatch.setattr(disk_cache, "_found", {})
    return monkeypatch


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/tensorplug-acme"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "/fast/tensorplug-acme"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/tensorplug-acme"),
        ("win32", {"LOCALAPPDATA": "/Local"}, "/Local/tensorplug-acme"),
        ("linux", {"HOME": "/home/me", CACHE: "/mine"}, "/mine"),
    ],
)
def test_the_folder_of_kept_programs(bare, system, variables, expected):
    for name, value in variables.items():
        bare.setenv(name, value)
    bare.setattr(disk_cache.sys, "platform", system)
    assert FOLDER.find().as_posix() == expected


@pytest.mark.parametrize(
    ("system", "variables", "missing"),
    [
        ("linux", {}, "HOME"),  # anybody could write a shared folder
        ("linux", {"HOME": ""}, "HOME"),
        ("win32", {"HOME": "/home/me"}, "LOCALAPPDATA"),
        ("linux", {"HOME": "/home/me", CACHE: "off"}, None),
    ],
)
def test_without_a_folder_there_is_one_warning(bare, system, variables, missing, recwarn):
    for name, value in variables.items():
        bare.setenv(name, value)
    bare.setattr(disk_cache.sys, "platform", system)
    with warnings.catch_warnings(action="always"):
        assert FOLDER.find() is None
        assert FOLDER.find() is None
    said = f"no folder is used to keep programs: {missing} is not set. Set {CACHE} to another"
    expected = [(BackendWarning, said)] if missing else []
    assert [(of.category, str(of.message)[: len(said)]) for of in recwarn] == expected


def test_a_place_that_cannot_be_written_to(bare, tmp_path, recwarn):
    def refuse(**_arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    bare.setenv(CACHE, str(tmp_path / "place"))
    place = FOLDER.find()
    bare.setattr(disk_cache.tempfile, "mkstemp", refuse)
    with warnings.catch_warnings(action="always"):
        assert not disk_cache.write(place / "file", b"content")
        disk_cache.SealedFiles(FOLDER.find()).keep("ab" * 32, b"code")
    assert not disk_cache.write(tmp_path / "file", b"content")  # nobody's cache: the caller knows
    said = f"{place} is not used to keep programs: Read-only file system. Set {CACHE} to another"
    assert [str(of.message)[: len(said)] for of in recwarn] == [said]
    assert not list(place.iterdir())


def test_a_folder_that_is_made_is_the_users_own(bare, tmp_path):
    place = tmp_path / "a" / "b"
    bare.setenv(CACHE, str(place))
    before = os.umask(0o002)  # as on systems where each user has a group
    try:
        assert disk_cache.write(place / "file", b"content")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (place, place / "file")] == [0o700, 0o600]
    assert FOLDER.find() == place
    assert disk_cache.read(place / "file") == b"content"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_not_used(bare, tmp_path, mode):
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    bare.setenv(CACHE, str(place))
    with pytest.warns(BackendWarning, match=r"shared is not used .*chmod go-w") as caught:
        assert FOLDER.find() is None
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert FOLDER.find() is None  # and says so once


def test_a_folder_of_another_user_is_not_used(bare, tmp_path):
    bare.setenv(CACHE, str(tmp_path))
    bare.setattr(disk_cache.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.warns(BackendWarning, match="belongs to another user"):
        assert FOLDER.find() is None


def test_a_file_of_another_user_is_not_read(bare, tmp_path):
    disk_cache.write(tmp_path / "file", b"content")
    bare.setattr(disk_cache.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert disk_cache.read(tmp_path / "file") is None


def test_only_files_are_read(bare, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    disk_cache.write(tmp_path / "file", b"content")
    for name in ("folder", "link", "none", "pipe"):
        assert disk_cache.read(tmp_path / name) is None


def test_leftovers_of_killed_processes_go(tmp_path):
    old, new, kept = (tmp_path / name for name in ("a.part", "b.part", "c.bin"))
    for file in (old, new, kept):
        file.write_bytes(b"half")
    past = time.time() - disk_cache.LEFTOVER_SECONDS - 60
    for file in (old, kept):
        os.utime(file, (past, past))
    disk_cache.prune_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [new, kept]


def test_a_write_that_fails_leaves_nothing(monkeypatch, tmp_path):
    def refuse(*_arguments):
        raise OSError("disk full")

    monkeypatch.setattr(disk_cache.Path, "replace", refuse)
    assert not disk_cache.write(tmp_path / "file", b"content")
    assert not list(tmp_path.iterdir())


KEY, OTHER = "ab" * 32, "cd" * 32


def test_a_sealed_file(tmp_path):
    files = disk_cache.SealedFiles(tmp_path)
    files.keep(KEY, b"code")
    assert files.find(KEY) == b"code"
    assert files.find(OTHER) is None
    files.forget(KEY)
    assert files.find(KEY) is None
    files.keep(KEY, b"")
    disk_cache.SealedFiles(None).keep(KEY, b"code")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("harm", [lambda _: b"", lambda it: it[:-1], lambda it: it[:40] + b"?"])
def test_a_broken_file_is_not_found(tmp_path, harm):
    files = disk_cache.SealedFiles(tmp_path)
    files.keep(KEY, b"code that is longer")
    (file,) = tmp_path.iterdir()
    file.write_bytes(harm(file.read_bytes()))
    assert files.find(KEY) is None


def test_a_file_belongs_to_its_key(tmp_path):
    files = disk_cache.SealedFiles(tmp_path)
    files.keep(KEY, b"code")
    (tmp_path / f"{KEY}.bin").rename(tmp_path / f"{OTHER}.bin")
    assert files.find(OTHER) is None


def test_the_oldest_go_first(tmp_path):
    for age in range(8):
        file = tmp_path / f"{age}.bin"
        file.write_bytes(bytes(100))
        os.utime(file, (1e9 - age, 1e9 - age))
    disk_cache.prune(tmp_path, 800)
    assert len(list(tmp_path.iterdir())) == 8
    disk_cache.prune(tmp_path, 799)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}.bin" for age in range(5)]
