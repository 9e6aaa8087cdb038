"""Files of the shapes that ELAN 6 and FLEx 9 write, with any text in them."""

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

Words = Sequence[tuple[str, str]]
"""Words with their labels; an empty label is none."""

ALPHABET = st.characters(categories=("L", "N", "P", "S"), codec="utf-8")
words = st.lists(
    st.tuples(st.text(ALPHABET, min_size=1, max_size=5), st.sampled_from(["", "n", "v"])), min_size=1, max_size=5
)
texts = st.lists(words, min_size=1, max_size=4)


def elan(speakers: dict[str, Sequence[Words]], words: bool = True, timed: bool = False, tasks: str = "pos") -> str:
    """Sentences of each speaker in a tier `tx@SPEAKER`, in words in `word@SPEAKER`, with their labels in `pos@SPEAKER`.

    With `timed`, words have times of their own, of which the inner ones are not aligned.
    """
    slots: list[str] = []
    tiers: list[str] = []
    number = 0

    def slot(value: int | None) -> str:
        name = f"ts{len(slots) + 1}"
        time = "" if value is None else f' TIME_VALUE="{value}"'
        slots.append(f'        <TIME_SLOT TIME_SLOT_ID="{name}"{time}/>\n')
        return name

    def annotation(kind: str, attributes: str, text: str) -> str:
        nonlocal number
        number += 1
        return (
            f'        <ANNOTATION>\n            <{kind} ANNOTATION_ID="a{number}" {attributes}>\n'
            f"                <ANNOTATION_VALUE>{escape(text)}</ANNOTATION_VALUE>\n            </{kind}>\n"
            "        </ANNOTATION>\n"
        )

    time = 0
    for speaker, sentences in speakers.items():
        of_tier: dict[str, list[str]] = {"tx": [], "word": [], "pos": []}
        for sentence in sentences:
            begin = slot(time)
            places = [begin, *(slot(None) for _ in sentence[1:])] if timed else []
            end = slot(time := time + 1000)
            time += 100
            of_tier["tx"].append(
                annotation(
                    "ALIGNABLE_ANNOTATION",
                    f'TIME_SLOT_REF1="{begin}" TIME_SLOT_REF2="{end}"',
                    " ".join(w for w, _ in sentence),
                )
            )
            whole, previous = number, ""
            for i, (word, label) in enumerate(sentence):
                if timed:
                    attributes = f'TIME_SLOT_REF1="{places[i]}" TIME_SLOT_REF2="{[*places, end][i + 1]}"'
                else:
                    attributes = f'ANNOTATION_REF="a{whole}"{previous}'
                kind = "ALIGNABLE_ANNOTATION" if timed else "REF_ANNOTATION"
                of_tier["word"].append(annotation(kind, attributes, word))
                previous = f' PREVIOUS_ANNOTATION="a{number}"'
                if label:
                    of_tier["pos"].append(annotation("REF_ANNOTATION", f'ANNOTATION_REF="a{number}"', label))
        parents = {"tx": "", "word": "tx", "pos": "word"}
        for name, annotations in of_tier.items():
            if name == "tx" or words:
                tier = tasks if name == "pos" else name
                parent = f"PARENT_REF={quoteattr(f'{parents[name]}@{speaker}')} " if parents[name] else ""
                names = f"PARTICIPANT={quoteattr(speaker)} TIER_ID={quoteattr(f'{tier}@{speaker}')}"
                start = f'LINGUISTIC_TYPE_REF="{tier}" {parent}{names}'
                tiers.append(f"    <TIER {start}>\n{''.join(annotations)}    </TIER>\n")
    kinds = {"tx": "", "word": "Time_Subdivision" if timed else "Symbolic_Subdivision", tasks: "Symbolic_Association"}
    types = "".join(
        f'    <LINGUISTIC_TYPE {f"CONSTRAINTS={quoteattr(c)} " if c else ""}GRAPHIC_REFERENCES="false" '
        f'LINGUISTIC_TYPE_ID="{name}" TIME_ALIGNABLE="{str(not c or (timed and name == "word")).lower()}"/>\n'
        for name, c in kinds.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2026-11-19T03:00:00+01:00" FORMAT="3.0" VERSION="3.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
        <MEDIA_DESCRIPTOR MEDIA_URL="file:///talk.wav" MIME_TYPE="audio/x-wav" RELATIVE_MEDIA_URL="./talk.wav"/>
        <PROPERTY NAME="lastUsedAnnotationId">{number}</PROPERTY>
    </HEADER>
    <TIME_ORDER>
{"".join(slots)}    </TIME_ORDER>
{"".join(tiers)}    <TIER LINGUISTIC_TYPE_REF="tx" TIER_ID="notes"/>
{types}    <LOCALE COUNTRY_CODE="US" LANGUAGE_CODE="en"/>
    <LANGUAGE LANG_DEF="http://cdb.iso.org/lg/CDB-00138502-001" LANG_ID="wol" LANG_LABEL="Wolof (wol)"/>
    <CONSTRAINT DESCRIPTION="Time subdivision, no time gaps allowed" STEREOTYPE="Time_Subdivision"/>
    <CONSTRAINT DESCRIPTION="Symbolic subdivision" STEREOTYPE="Symbolic_Subdivision"/>
    <!-- a > in a comment, and <TIER> -->
    <CONTROLLED_VOCABULARY CV_ID="a &gt; b &quot;c&quot;"/>
</ANNOTATION_DOCUMENT>
"""


def flex(sentences: Sequence[Words], line_end: str = "\n", items: str = "pos") -> str:
    """Phrases of words in `wol`, glossed in English; a word of a label `n` has it as the `msa` of its stem."""
    phrases = []
    for number, sentence in enumerate(sentences, start=1):
        of_words = []
        for word, label in sentence:
            if not any(map(str.isalnum, word)):
                of_words.append(
                    f'              <word>\n                <item type="punct" lang="wol">{escape(word)}</item>\n'
                    "              </word>\n"
                )
                continue
            stem = f'<item type="msa" lang="en">{label} </item>' if label == "n" and items == "pos" else ""
            rest = f'                <item type="{items}" lang="en">{label}</item>\n' if label and not stem else ""
            of_words.append(
                f'              <word guid="{number}-{len(of_words)}">\n'
                f'                <item type="txt" lang="wol">{escape(word)}</item>\n'
                f'                <item type="txt" lang="wol-Arab">x</item>\n'
                f'                <morphemes>\n                  <morph type="stem" guid="d7f713e8-e8cf">\n'
                f'                    <item type="txt" lang="wol">{escape(word)}</item>{stem}\n'
                f"                  </morph>\n                </morphemes>\n"
                f'                <item type="gls" lang="en">a &lt;gloss&gt;</item>\n{rest}              </word>\n'
            )
        text = escape(" ".join(word for word, _ in sentence))
        phrases.append(
            f'          <phrase guid="{number}" begin-time-offset="{number}000" end-time-offset="{number}900">\n'
            f'            <item type="txt" lang="wol">{text}</item>\n'
            f'            <item type="segnum" lang="en">{number}</item>\n            <words>\n{"".join(of_words)}'
            '            </words>\n            <item type="gls" lang="en">in English</item>\n          </phrase>\n'
        )
    text = f"""\ufeff<?xml version="1.0" encoding="utf-8"?>
<document version="2">
  <interlinear-text guid="f2b1">
    <item type="title" lang="en">A story</item>
    <paragraphs>
      <paragraph guid="p1">
        <phrases>
{"".join(phrases)}        </phrases>
      </paragraph>
    </paragraphs>
    <languages>
      <language lang="wol" font="Charis SIL" vernacular="true"/>
      <language lang="wol-Arab" font="Charis SIL" vernacular="true"/>
      <language lang="en" font="Times New Roman"/>
    </languages>
  </interlinear-text>
</document>
"""
    return text.replace("\n", line_end)
