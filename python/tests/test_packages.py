"""The source packages of library and program are complete; what they compile to is looked at in ./check long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from packages import FOLDERS, ROOT, check


@pytest.mark.parametrize("name", FOLDERS)
def test_source_package_is_complete_outside_the_repository(name: str, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / FOLDERS[name], check=True)
    [package] = tmp_path.glob("*.tar.gz")
    check(package)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(package)], check=True)
