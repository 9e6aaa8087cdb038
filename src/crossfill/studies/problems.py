"""Problems with the methods and encoders that a study names, found before any training."""

from pydantic import ValidationError

from crossfill.config import EncoderConfig
from crossfill.errors import CrossfillError
from crossfill.methods.registry import find_method
from crossfill.settings import merged
from crossfill.studies.study import StudyConfig


def method_problems(study: StudyConfig) -> list[str]:
    """Unknown method names."""
    problems = []
    for method in study.methods:
        try:
            find_method(method)
        except CrossfillError as error:
            problems.append(f"methods: {error}")
    return problems


def encoder_problems(study: StudyConfig) -> list[str]:
    """Problems with the pretrained encoders that the study names."""
    problems: dict[str, None] = {}
    for own in study.methods.values():
        try:
            encoder = EncoderConfig.model_validate(merged(study.config, own).get("encoder", {}))
        except ValidationError:
            continue  # reported with the settings
        if encoder.name != "compact":
            from crossfill.encoders.huggingface import Source, check_settings

            try:
                check_settings(Source.find(encoder.name), encoder.pretrained)
            except CrossfillError as error:
                problems[str(error)] = None
    return list(problems)
