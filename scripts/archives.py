"""Unpacks archives: regular files and folders only, none outside the folder (Python before 3.11.4 has no filters)."""

import tarfile
from pathlib import Path


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of an archive into a folder.

    Raises:
        tarfile.TarError: a member is no regular file or folder, or lies outside.
    """
    place = folder.resolve()
    for member in archive:
        target = (place / member.name).resolve()
        if not target.is_relative_to(place) or not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"{member.name} is not a file inside the archive")
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        content = archive.extractfile(member)
        assert content is not None
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read())
