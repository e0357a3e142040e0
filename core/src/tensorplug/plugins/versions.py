"""Versions and version specifiers, ordered and matched as PEP 440 says.

The core depends on NumPy, pluggy and importlib-metadata alone, and none of them brings a
parser, so the part needed to check one requirement before an import is written here. The
tests compare it with the ``packaging`` library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Specifier", "Version", "parse_specifiers"]

_VERSION: Final = re.compile(
    r"""\s*v?
    (?:(?P<epoch>\d+)!)?
    (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>\d*))?
    (?P<post>-(?P<post_implicit>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?
    \s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PRE: Final = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}
_LOWEST: Final = (0,)  # sorts before every (1, ...)
_HIGHEST: Final = (2,)
_FINAL: Final = (_HIGHEST, -1, _HIGHEST)  # no pre-release, no post-release, no development


@dataclass(frozen=True, slots=True)
class Version:
    """One version. ``key`` orders versions, the local part last."""

    text: str
    epoch: int
    release: tuple[int, ...]
    pre: tuple[str, int] | None
    post: int | None
    dev: int | None
    local: str | None

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read a version.

        Raises:
            ValueError: when it is none.

        """
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a version")
        pre = match["pre"] and match["pre"].lower()
        return cls(
            text.strip(),
            int(match["epoch"] or 0),
            tuple(int(part) for part in match["release"].split(".")),
            (_PRE.get(pre, pre), int(match["pre_number"] or 0)) if pre else None,
            int(match["post_implicit"] or match["post_number"] or 0) if match["post"] else None,
            int(match["dev_number"] or 0) if match["dev"] else None,
            re.sub("[-_]", ".", match["local"].lower()) if match["local"] else None,
        )

    @property
    def public_key(self) -> tuple[Any, ...]:
        """What orders versions whose local parts do not matter."""
        release = list(self.release)
        while len(release) > 1 and release[-1] == 0:
            release.pop()
        # A development release of the plain release comes before its pre-releases.
        bare_dev = self.pre is None and self.post is None and self.dev is not None
        pre = _LOWEST if bare_dev else (1, *self.pre) if self.pre else _HIGHEST
        post = -1 if self.post is None else self.post
        dev = (1, self.dev) if self.dev is not None else _HIGHEST
        return (self.epoch, tuple(release), pre, post, dev)

    @property
    def key(self) -> tuple[Any, ...]:
        """What orders all versions."""
        parts = self.local.split(".") if self.local else []
        local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
        return (self.public_key, local)

    def starts_with(self, release: tuple[int, ...], epoch: int) -> bool:
        """Return whether ``==release.*`` matches."""
        size = len(release)
        return (self.epoch, self._padded(size)[:size]) == (epoch, release)

    def _padded(self, size: int) -> tuple[int, ...]:
        return self.release + (0,) * (size - len(self.release))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Specifier:
    """One condition on a version, such as ``>=0.2`` or ``==1.*``."""

    operator: str
    text: str
    version: Version | None  # None for ``===``, which compares text
    wildcard: bool

    @classmethod
    def parse(cls, text: str) -> Specifier:
        """Read one condition.

        Raises:
            ValueError: when it is none.

        """
        match = re.fullmatch(r"\s*(===|==|!=|~=|<=|>=|<|>)\s*(\S+)\s*", text)
        if match is None:
            raise ValueError(f"{text!r} is not a version specifier")
        operator, wanted = match.groups()
        if operator == "===":
            return cls(operator, wanted, None, wildcard=False)
        wildcard = wanted.endswith(".*")
        if wildcard and operator not in ("==", "!="):
            raise ValueError(f"{text!r}: only == and != may end in .*")
        version = Version.parse(wanted.removesuffix(".*"))
        if wildcard and (version.public_key[2:] != _FINAL or version.local is not None):
            raise ValueError(f"{text!r}: only a plain release may end in .*")
        if operator == "~=" and len(version.release) < 2:
            raise ValueError(f"{text!r}: ~= needs at least two numbers")
        if version.local is not None and operator not in ("==", "!="):
            raise ValueError(f"{text!r}: only == and != may name a local version")
        return cls(operator, wanted, version, wildcard)

    def allows(self, version: Version) -> bool:
        """Return whether ``version`` fulfils this; pre-releases count, for they are installed."""
        if self.version is None:
            return version.text.lower() == self.text.lower()
        return getattr(self, _RULES[self.operator])(version, self.version)  # type: ignore[no-any-return]  # a bound method of this class

    def _equal(self, version: Version, wanted: Version) -> bool:
        if self.wildcard:
            return version.starts_with(wanted.release, wanted.epoch)
        if wanted.local is None:
            return version.public_key == wanted.public_key
        return version.key == wanted.key

    def _unequal(self, version: Version, wanted: Version) -> bool:
        return not self._equal(version, wanted)

    def _at_least(self, version: Version, wanted: Version) -> bool:
        return version.public_key >= wanted.public_key

    def _at_most(self, version: Version, wanted: Version) -> bool:
        return version.public_key <= wanted.public_key

    def _below(self, version: Version, wanted: Version) -> bool:
        # PEP 440: <1.0 leaves out 1.0's own pre-releases, unless it names one itself.
        if version.public_key >= wanted.public_key:
            return False
        if wanted.pre is not None or wanted.dev is not None or not _same_release(version, wanted):
            return True
        if wanted.post is None:
            return version.pre is None and version.dev is None
        return not (version.post == wanted.post and version.dev is not None)

    def _above(self, version: Version, wanted: Version) -> bool:
        # PEP 440: >1.0 leaves out 1.0's own post-releases, unless it names one itself.
        if version.public_key <= wanted.public_key:
            return False
        own = version.pre == wanted.pre and _same_release(version, wanted)
        named = wanted.post is not None or wanted.dev is not None
        return named or version.post is None or not own

    def _compatible(self, version: Version, wanted: Version) -> bool:
        prefix = wanted.release[:-1]
        return self._at_least(version, wanted) and version.starts_with(prefix, wanted.epoch)

    def __str__(self) -> str:
        return f"{self.operator}{self.text}"


_RULES: Final = {
    "==": "_equal",
    "!=": "_unequal",
    ">=": "_at_least",
    "<=": "_at_most",
    "<": "_below",
    ">": "_above",
    "~=": "_compatible",
}


def _same_release(a: Version, b: Version) -> bool:
    size = max(len(a.release), len(b.release))
    return (a.epoch, a._padded(size)) == (b.epoch, b._padded(size))


def parse_specifiers(text: str) -> tuple[Specifier, ...]:
    """Read conditions separated by commas; none at all allow everything.

    Raises:
        ValueError: when one of them is not a version specifier.

    """
    return tuple(Specifier.parse(part) for part in text.split(",") if part.strip())
