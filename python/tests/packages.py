"""What a source package or a wheel must hold before anyone is given it: ``python packages.py FILE...``."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import tomllib
from trove_classifiers import classifiers as known_classifiers

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"debora": "python", "debora-cli": "app"}
OURS = {"LICENSE-APACHE", "LICENSE-MIT"}
# The program has the scripts and styles of its pages inside.
THEIRS = {"assets/htmx.LICENSE", "assets/idiomorph.LICENSE", "assets/pico.LICENSE"}
LICENCES = {"debora": OURS, "debora-cli": OURS | THEIRS}


def check(package: Path) -> None:
    """Raises AssertionError on the first thing that is wrong with a package."""
    files = unpacked(package)
    if package.suffix == ".whl":
        check_wheel(files)
    else:
        check_source(files)


def unpacked(package: Path) -> dict[str, bytes]:
    """The files of a package by name; a source package's without their common folder."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(package) as source:
        files = {member.name: source.extractfile(member) for member in source.getmembers() if member.isfile()}
        return {name.split("/", 1)[1]: file.read() for name, file in files.items() if file}


def check_source(files: dict[str, bytes]) -> None:
    metadata = message_from_bytes(files["PKG-INFO"])
    check_metadata(metadata, {name: files.get(name, b"") for name in LICENCES[metadata["Name"]]})
    project = tomllib.loads(files["pyproject.toml"].decode())["project"]
    # A wheel that is built from this package shows the page that its pyproject.toml names, from its own root.
    assert files[project["readme"]] == files[f"{FOLDERS[metadata['Name']]}/PYPI.md"], "another page would be shown"
    # Cargo builds nothing beside a manifest that names a bench which is not there; `cargo metadata` does not mind.
    for folder in ("", f"{FOLDERS[metadata['Name']]}/"):
        for bench in tomllib.loads(files[f"{folder}Cargo.toml"].decode()).get("bench", []):
            path = f"{folder}benches/{bench['name']}"
            assert f"{path}.rs" in files or f"{path}/main.rs" in files, f"{path} is named and missing"
    own = f"{FOLDERS[metadata['Name']]}/"
    unwanted = [name for name in files if re.match(own + "(tests|examples)/", name)]
    assert not unwanted, f"only useful within the repository: {unwanted}"


def check_wheel(files: dict[str, bytes]) -> None:
    [folder] = {name.split("/")[0] for name in files if ".dist-info/" in name}
    metadata = message_from_bytes(files[f"{folder}/METADATA"])
    licences = {name: files.get(f"{folder}/licenses/{name}", b"") for name in LICENCES[metadata["Name"]]}
    check_metadata(metadata, licences)
    tag = message_from_bytes(files[f"{folder}/WHEEL"])["Tag"]
    assert "-linux_" not in tag, f"{tag} is for this machine alone, and no index takes it"
    held = {name for name in files if not name.startswith(f"{folder}/")}
    if metadata["Name"] == "debora":
        check_extension(tag, held)
    else:
        check_program(tag, held)


def check_extension(tag: str, held: set[str]) -> None:
    # One wheel for all versions, except that interpreters without the lock have a binary interface of their own.
    assert re.match(r"cp310-abi3-|cp3\d+-cp3\d+t-", tag), f"{tag} is for one version of Python only"
    source = ROOT / "python/python/debora"
    written = {f"debora/{path.name}" for path in source.iterdir() if path.suffix in {".py", ".pyi", ".typed"}}
    assert "debora/py.typed" in written
    rest = held - written
    assert written <= held, f"missing: {written - held}"
    assert len(rest) == 1, f"one extension and nothing else: {rest}"
    assert re.fullmatch(r"debora/_debora\.(abi3\.so|pyd|cpython-.*\.so|cp3\d+t-.*\.pyd)", rest.pop())


def check_program(tag: str, held: set[str]) -> None:
    assert tag.startswith("py3-none-"), f"{tag}: a program needs no certain Python"
    assert [name.split("/", 1)[1] for name in held] in (["scripts/debora"], ["scripts/debora.exe"]), held


def check_metadata(metadata: Message, licences: dict[str, bytes]) -> None:
    name = metadata["Name"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert metadata["Version"] == workspace["version"]
    assert metadata["License-Expression"] == workspace["license"]
    assert metadata["Author"] == "The debora developers"
    assert metadata["Project-URL"] == f"Source Code, {workspace['repository']}", metadata["Project-URL"]
    assert metadata["Keywords"] and metadata["Summary"]
    assert set(metadata.get_all("License-File", [])) == set(licences)
    for file, text in licences.items():
        # Links to the root's licences: a package holds what they point to, wherever links are not known.
        original = ROOT / ("app" if file.startswith("assets/") else ".") / file
        assert text == original.read_bytes(), f"{file} is not the repository's"
    stated = set(metadata.get_all("Classifier", []))
    assert "Programming Language :: Rust" in stated
    assert stated <= known_classifiers, f"no index knows {stated - known_classifiers}"
    page = (ROOT / FOLDERS[name] / "PYPI.md").read_text()
    assert str(metadata.get_payload()).strip() == page.strip(), "the page shown is not PYPI.md"
    relative = re.findall(r"\]\((?!https://|#)[^)]*\)", page)
    assert not relative, f"an index does not have what these point to: {relative}"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(Path(argument))
        print(f"{argument} holds what it must")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *sys.argv[1:]], check=True)
