"""Small data folders in made-up sentences."""

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossfill.data.bio import TokenTable
from crossfill.data.reading import decode
from crossfill.grid.sentence import Sentence

Tagged = Sequence[tuple[str, str]]


def conllu(*sentences: Tagged) -> str:
    """Words with their UPOS; XPOS is its first letter, the relation `dep:x`, and nouns are in the nominative."""
    return "".join(
        "".join(
            f"{i}\t{word}\t_\t{pos}\t{pos[0]}\t{'Case=Nom' if pos == 'NOUN' else '_'}\t0\tdep:x\t_\t_\n"
            for i, (word, pos) in enumerate(sentence, start=1)
        )
        + "\n"
        for sentence in sentences
    )


def bio(*sentences: Tagged) -> str:
    return "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in sentences)


def read_bio(data: bytes, where: str) -> list[Sentence]:
    """The sentences of a file of token columns, as they are."""
    return list(TokenTable.of(decode(data, where), where).sentences())


def numbered(n: int, tag: str, start: int = 0) -> list[Tagged]:
    """Sentences that all differ."""
    return [[(f"erwa{i}", tag), ("moku", "O" if "-" in tag else "VERB")] for i in range(start, start + n)]


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def tar(files: Mapping[str, str], link: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("ud/UD_X/wo_x-ud-dev.conllu")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return packed.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()
