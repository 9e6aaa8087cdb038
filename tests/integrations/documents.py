"""Documents as INCEpTION sends them: a type system and XMI of its shape, with text of our own."""

from xml.sax.saxutils import quoteattr

from crossfill.grid.sentence import Sentence

NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
POS = "de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS"
_SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type"


def type_system(layer: str = NAMED_ENTITY, feature: str = "value") -> str:
    """The types of a small project: sentences, tokens, and one layer with the features that predictions have."""
    features = {
        feature: "uima.cas.String",
        f"{feature}_score": "uima.cas.Double",
        f"{feature}_score_explanation": "uima.cas.String",
        f"{feature}_auto_accept": "uima.cas.String",
        "inception_internal_predicted": "uima.cas.Boolean",
    }
    types = {f"{_SEGMENTATION}.Sentence": {}, f"{_SEGMENTATION}.Token": {}, layer: features}
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier"><types>'
        + "".join(
            f"<typeDescription><name>{name}</name><description/><supertypeName>uima.tcas.Annotation</supertypeName>"
            "<features>"
            + "".join(
                f"<featureDescription><name>{own}</name><description/><rangeTypeName>{kind}</rangeTypeName>"
                "</featureDescription>"
                for own, kind in owned.items()
            )
            + "</features></typeDescription>"
            for name, owned in types.items()
        )
        + "</types></typeSystemDescription>"
    )


def xmi(
    text: str,
    sentences: list[Sentence],
    annotations: list[tuple[int, int, str]] = (),
    layer: str = NAMED_ENTITY,
    feature: str = "value",
) -> str:
    """A document with its sentences and tokens, and annotations as start, end (in characters) and label."""

    def units(place: int) -> int:
        return len(text[:place].encode("utf-16-le")) // 2

    def element(prefix: str, name: str, start: int, end: int, more: str = "") -> str:
        ids.append(len(ids) + 2)
        return f'<{prefix}:{name} xmi:id="{ids[-1]}" sofa="1" begin="{units(start)}" end="{units(end)}"{more}/>'

    ids: list[int] = []
    package, _, name = layer.rpartition(".")
    parts = [element("type", "Sentence", s.offsets[0][0], s.offsets[-1][1]) for s in sentences]
    parts += [element("type", "Token", *place) for s in sentences for place in s.offsets]
    parts += [element("own", name, start, end, f" {feature}={quoteattr(label)}") for start, end, label in annotations]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xmi:XMI xmlns:xmi="http://www.omg.org/XMI" '
        'xmlns:cas="http:///uima/cas.ecore" xmlns:tcas="http:///uima/tcas.ecore" '
        f'xmlns:type="http:///{_SEGMENTATION.replace(".", "/")}.ecore" '
        f'xmlns:own="http:///{package.replace(".", "/")}.ecore" xmi:version="2.0"><cas:NULL xmi:id="0"/>'
        + "".join(parts)
        + f'<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString={quoteattr(text)}/>'
        f'<cas:View sofa="1" members="{" ".join(map(str, ids))}"/></xmi:XMI>'
    )
