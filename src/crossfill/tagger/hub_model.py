"""Models of the Hugging Face hub: found by name, fetched as data, and uploaded."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import ModelHubMixin

from crossfill import checkpoint
from crossfill.encoders.encoder_checks import READ, first_line
from crossfill.errors import CheckpointError

M = TypeVar("M", bound="HubModel")
_WANTED = [
    *(checkpoint.DESCRIPTION, checkpoint.WEIGHTS, checkpoint.CALIBRATION, checkpoint.DATA),
    *(checkpoint.RESULTS, checkpoint.EXPECTED, checkpoint.EXAMPLES, checkpoint.ENCODER_SOURCE, checkpoint.CARD),
    *(checkpoint.CARD_NOTES, f"{checkpoint.ADAPTED}/*.safetensors", *(f"{checkpoint.ENCODER}/*{end}" for end in READ)),
]
"""Files of a model folder that are fetched: JSON, safetensors and text alone."""


class HubModel(ModelHubMixin, ABC, library_name="crossfill"):
    """A model that comes from the hub and goes to it, in the ways of huggingface_hub's `ModelHubMixin`."""

    @classmethod
    @abstractmethod
    def from_folder(cls: type[M], folder: Path, encoder: str | None = None, cache: Path | bool = False) -> M:
        """Load the model in a folder."""

    @abstractmethod
    def save(self, folder: str | Path) -> Path:
        """Write a model folder."""

    @abstractmethod
    def set_card(self, **notes: Any) -> None:
        """Change what the model card says that only a person can say."""

    @classmethod
    def from_pretrained(
        cls: type[M],
        pretrained_model_name_or_path: str | Path,
        *,
        encoder: str | None = None,
        cache: Path | bool = False,
        **hub_options: Any,
    ) -> M:
        """Load a model folder, or a model of the hub; see `crossfill.load` for `encoder` and `cache`.

        `hub_options` are `revision`, `cache_dir`, `token`, `local_files_only` and `force_download`, as in
        huggingface_hub. Its own function is not used: it asks for a config.json, and fails offline without one.
        """
        return cls.from_folder(find_model(pretrained_model_name_or_path, **hub_options), encoder, cache)

    def save_pretrained(
        self, save_directory: str | Path, *, model_card_kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> str | None:
        """Write a model folder, as `save`; with `push_to_hub=True`, upload it, and return the address of the commit.

        `model_card_kwargs` are those of `set_card`.
        """
        self.set_card(**(model_card_kwargs or {}))
        return super().save_pretrained(save_directory, **options)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = True,
        delete_patterns: list[str] | str | None = None,
        **options: Any,
    ) -> str:
        """Upload the model folder, with the login of huggingface_hub; returns the address of the commit.

        A repository that is made for it is private unless `private` says otherwise. Files of cells that were adapted
        before and are not any more are deleted there, and so are others that match `delete_patterns`.
        """
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        patterns = [delete_patterns] if isinstance(delete_patterns, str) else list(delete_patterns or ())
        patterns.append(f"{checkpoint.ADAPTED}/*")
        try:
            return super().push_to_hub(repo_id, private=private, delete_patterns=patterns, **options)
        except (HFValidationError, HfHubHTTPError, ValueError, OSError) as error:
            raise CheckpointError(
                f"'{repo_id}': expected a repository of the hub that can be written; {first_line(error)}; log in "
                f"with hf auth login, or save the model to a folder and upload that: hf upload {repo_id} FOLDER"
            ) from None

    def _save_pretrained(self, save_directory: Path) -> None:
        self.save(save_directory)


def find_model(name: str | Path, revision: str | None = None, **options: Any) -> Path:
    """Find the folder of a model: the path itself or, for a name of the hub, a copy in the hub's cache, fetched there.

    A stranger's repository is taken as data: nothing is fetched before its description is that of a crossfill model,
    and then only the files that a model folder has. `options` are those of huggingface_hub: `cache_dir`, `token`,
    `local_files_only` and `force_download`.
    """
    path = Path(name).expanduser()
    if path.exists() or not is_hub_name(str(name)):
        if revision is not None:
            raise CheckpointError(f"'{name}': expected a name of the hub, as there is a revision; got a folder")
        return path
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    try:
        description = Path(hf_hub_download(str(name), checkpoint.DESCRIPTION, revision=revision, **options))
        checkpoint.read_description(description.parent)
        commit = description.parent.name  # all files of one commit, also if there is a new one by now
        snapshot_download(str(name), revision=commit, allow_patterns=_WANTED, ignore_patterns=["*/*/*"], **options)
    except CheckpointError as error:
        raise CheckpointError(f"model '{name}' of the hub: expected a crossfill model; {error}") from None
    except RemoteEntryNotFoundError:
        raise CheckpointError(
            f"model '{name}' of the hub: expected a crossfill model, found none: it has no {checkpoint.DESCRIPTION}"
        ) from None
    except (OSError, ValueError) as error:
        raise _not_found(str(name), revision, options.get("local_files_only", False), error) from None
    return description.parent


def is_hub_name(name: str) -> bool:
    """Whether a path could name a model of the hub, as `me/tagger`: not if its first part is a folder here."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    owner, _, rest = name.partition("/")
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return bool(owner and rest) and not Path(owner).exists()


def shown_name(folder: Path) -> str:
    """The name of a model for people: that of the hub where it came from there, else that of its folder."""
    from crossfill.encoders.hub import Origin

    origin = Origin.of(folder)
    return origin.name if origin is not None else folder.resolve().name


def _not_found(name: str, revision: str | None, local_only: bool, error: Exception) -> CheckpointError:
    from huggingface_hub import is_offline_mode
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    at = f" --revision {revision}" if revision else ""
    remedy = f"fetch it where there is a network (hf download {name}{at}) and copy that cache here, or name a folder"
    if is_offline_mode() or local_only:
        why = "HF_HUB_OFFLINE is set" if is_offline_mode() else "local_files_only is set"
        reason = f"and it may not be fetched, as {why}"
    elif isinstance(error, RevisionNotFoundError):
        reason = f"as the hub has no revision '{revision}' of it"
    elif isinstance(error, RepositoryNotFoundError):
        reason, remedy = "as the hub has no such model, or not for you", "correct the name, or log in (hf auth login)"
    else:
        reason = f"as the hub was not reached ({first_line(error)})"
    return CheckpointError(
        f"model '{name}': expected a folder, or a model of the hub that is in {HF_HUB_CACHE} or can be fetched; found "
        f"neither, {reason}; {remedy}"
    )
