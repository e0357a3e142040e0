"""The folder on disk: its owner, trusted files, cleaning up."""

from __future__ import annotations

import os
import time

import pytest

from tensorplug.errors import BackendWarning
from tensorplug_opencl import cache_folder

NAMES = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", cache_folder.CACHE, "PYOPENCL_NO_CACHE")


@pytest.fixture
def bare(monkeypatch):
    """An environment without settings of folders, and a process that has not warned yet."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache_folder, "_refused", set())
    return monkeypatch


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/tensorplug-opencl"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "/fast/tensorplug-opencl"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/tensorplug-opencl"),
        ("win32", {"LOCALAPPDATA": "/Local"}, "/Local/tensorplug-opencl"),
        ("linux", {"HOME": "/home/me", cache_folder.CACHE: "/mine"}, "/mine"),
    ],
)
def test_the_place(bare, system, variables, expected):
    for name, value in variables.items():
        bare.setenv(name, value)
    bare.setattr(cache_folder.sys, "platform", system)
    assert cache_folder.find_folder().as_posix() == expected


@pytest.mark.parametrize(
    ("system", "variables"),
    [
        ("linux", {}),  # no home: anybody could write a shared folder
        ("win32", {"HOME": "/home/me"}),
        ("linux", {"HOME": "/home/me", cache_folder.CACHE: "off"}),
        ("linux", {"HOME": "/home/me", "PYOPENCL_NO_CACHE": "1"}),
    ],
)
def test_no_place(bare, system, variables):
    for name, value in variables.items():
        bare.setenv(name, value)
    bare.setattr(cache_folder.sys, "platform", system)
    assert cache_folder.find_folder() is None


def test_a_folder_that_is_made_is_the_users_own(bare, tmp_path):
    place = tmp_path / "a" / "b"
    bare.setenv(cache_folder.CACHE, str(place))
    before = os.umask(0o002)  # as on systems where each user has a group
    try:
        assert cache_folder.write(place / "file", b"content")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (place, place / "file")] == [0o700, 0o600]
    assert cache_folder.find_folder() == place
    assert cache_folder.read(place / "file") == b"content"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_not_used(bare, tmp_path, mode):
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    bare.setenv(cache_folder.CACHE, str(place))
    with pytest.warns(BackendWarning, match=r"shared is not used .*chmod go-w") as caught:
        assert cache_folder.find_folder() is None
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert cache_folder.find_folder() is None  # and says so once


def test_a_folder_of_another_user_is_not_used(bare, tmp_path):
    bare.setenv(cache_folder.CACHE, str(tmp_path))
    bare.setattr(cache_folder.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.warns(BackendWarning, match="belongs to another user"):
        assert cache_folder.find_folder() is None


def test_a_file_of_another_user_is_not_read(bare, tmp_path):
    cache_folder.write(tmp_path / "file", b"content")
    bare.setattr(cache_folder.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache_folder.read(tmp_path / "file") is None


def test_only_files_are_read(bare, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    cache_folder.write(tmp_path / "file", b"content")
    for name in ("folder", "link", "none", "pipe"):
        assert cache_folder.read(tmp_path / name) is None


def test_leftovers_of_killed_processes_go(tmp_path):
    old, new, kept = (tmp_path / name for name in ("a.part", "b.part", "c.bin"))
    for file in (old, new, kept):
        file.write_bytes(b"half")
    past = time.time() - cache_folder.LEFTOVER_SECONDS - 60
    for file in (old, kept):
        os.utime(file, (past, past))
    cache_folder.prune_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == [new, kept]


def test_a_write_that_fails_leaves_nothing(monkeypatch, tmp_path):
    def refuse(*_arguments):
        raise OSError("disk full")

    monkeypatch.setattr(cache_folder.Path, "replace", refuse)
    assert not cache_folder.write(tmp_path / "file", b"content")
    assert not list(tmp_path.iterdir())
