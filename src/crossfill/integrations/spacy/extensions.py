"""What extensions say of documents, spans and tokens: everything found, confidence and doubt.

doc._.crossfill                 by cell: label, confidence, entropy and mutual information of every token
token._.crossfill               by cell: the same of one token
token._.crossfill_confidence    the lowest confidence of its labels; none where there are none
token._.crossfill_doubtful      whether any of its labels should be checked
span._.crossfill_confidence     the probability of exactly this span; none if it was not found
span._.crossfill_doubtful       whether any of its tokens should be checked
"""

from typing import Any

from spacy.tokens import Doc, Span, Token

from crossfill.integrations.spacy.annotations import RECORD


def register() -> None:
    """Register the extensions, once for the process."""
    if not Doc.has_extension(RECORD):
        Doc.set_extension(RECORD, default=None)
        Token.set_extension(RECORD, getter=of_token)
        Token.set_extension("crossfill_confidence", getter=token_confidence)
        Token.set_extension("crossfill_doubtful", getter=token_doubtful)
        Span.set_extension("crossfill_confidence", getter=span_confidence)
        Span.set_extension("crossfill_doubtful", getter=span_doubtful)


def of_token(token: Token) -> dict[str, dict[str, Any]]:
    """What was found for a token, by cell; nothing for white space."""
    record = token.doc._.crossfill or {}
    found = {cell: {name: values[token.i] for name, values in own.items()} for cell, own in record.items()}
    return {cell: own for cell, own in found.items() if own["label"] is not None}


def token_confidence(token: Token) -> float | None:
    """The lowest confidence of a token's labels."""
    return min((own["confidence"] for own in of_token(token).values()), default=None)


def token_doubtful(token: Token) -> bool:
    """Whether any label of a token should be checked."""
    return any(own.get("doubtful", False) for own in of_token(token).values())


def span_confidence(span: Span) -> float | None:
    """The probability of exactly this span, as in `doc.spans[…].attrs["scores"]`."""
    for group in span.doc.spans.values():
        for own, score in zip(group, group.attrs.get("scores", ()), strict=False):
            if "cells" in group.attrs and (own.start, own.end, own.label) == (span.start, span.end, span.label):
                return score
    return None


def span_doubtful(span: Span) -> bool:
    """Whether any token of a span should be checked."""
    return any(token_doubtful(token) for token in span)
