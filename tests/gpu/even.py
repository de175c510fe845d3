"""even.py FOLDER ...: deals the stream that is in their files site.* out anew, so that all folders are of one size."""

import sys
from pathlib import Path

folders = [Path(word) for word in sys.argv[1:]]
stream = [file for folder in folders for file in folder.glob("site.*")]
pieces = sorted(stream, key=lambda file: file.name)
whole = b"".join(file.read_bytes() for file in pieces)
for file in pieces:
    file.unlink()
others = [sum(file.stat().st_size for file in folder.iterdir()) for folder in folders]
size = -(-(len(whole) + sum(others)) // len(folders))
for number, (folder, taken) in enumerate(zip(folders, others, strict=True)):
    piece, whole = whole[: max(0, size - taken)], whole[max(0, size - taken) :]
    (folder / f"site.{number:02}").write_bytes(piece)
assert not whole
