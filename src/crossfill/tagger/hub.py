"""Models of the Hugging Face hub: found by name, fetched as data, and uploaded."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from crossfill import checkpoint
from crossfill.encoders.foreign import READ, first_line
from crossfill.errors import CheckpointError

Own = TypeVar("Own", bound="OnHub")
_WANTED = [
    *(checkpoint.DESCRIPTION, checkpoint.WEIGHTS, checkpoint.CALIBRATION, checkpoint.DATA),
    *(checkpoint.RESULTS, checkpoint.EXPECTED, checkpoint.EXAMPLES, checkpoint.ENCODER_SOURCE, checkpoint.CARD),
    *(checkpoint.CARD_NOTES, f"{checkpoint.ADAPTED}/*.safetensors", *(f"{checkpoint.ENCODER}/*{end}" for end in READ)),
]
"""Files of a model folder that are fetched: JSON, safetensors and text alone."""


class OnHub(ABC):
    """A model that comes from the hub and goes to it, in the shape of huggingface_hub's `ModelHubMixin`.

    It is not that class: its own `from_pretrained` would read our config.json as arguments of `__init__`.
    """

    @classmethod
    @abstractmethod
    def from_folder(cls: type[Own], folder: Path, encoder: str | None = None, cache: Path | bool = False) -> Own:
        """The model in a folder."""

    @abstractmethod
    def save(self, folder: str | Path, with_encoder: bool = False) -> Path:
        """Write a model folder."""

    @abstractmethod
    def note(self, notes: Mapping[str, Any]) -> None:
        """Change what the model card says that only a person can say."""

    @classmethod
    def from_pretrained(
        cls: type[Own],
        pretrained_model_name_or_path: str | Path,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        encoder: str | None = None,
        cache: Path | bool = False,
    ) -> Own:
        """Load a model folder, or a model of the hub; see `crossfill.load` for `encoder` and `cache`.

        The network is used only for a name of the hub, where no such folder exists: `revision` is a branch, a tag or a
        commit of it, and `cache_dir`, `token`, `local_files_only` and `force_download` are as in huggingface_hub.
        """
        folder = find_model(
            pretrained_model_name_or_path,
            revision=revision,
            cache_dir=cache_dir,
            force_download=force_download,
            local_files_only=local_files_only,
            token=token,
        )
        return cls.from_folder(folder, encoder, cache)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        with_encoder: bool = False,
        model_card_kwargs: Mapping[str, Any] | None = None,
        **push_to_hub_kwargs: Any,
    ) -> str | None:
        """Write a model folder, as `save`; with `push_to_hub`, upload it besides, and return the address of the commit.

        `model_card_kwargs` are notes for the card: `license`, `datasets`, `title`.
        """
        self.note(model_card_kwargs or {})
        folder = self.save(save_directory, with_encoder)
        if not push_to_hub:
            return None
        return self.push_to_hub(repo_id or folder.resolve().name, with_encoder=with_encoder, **push_to_hub_kwargs)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        commit_message: str = "Upload a crossfill model",
        private: bool | None = True,
        token: str | None = None,
        branch: str | None = None,
        create_pr: bool | None = None,
        allow_patterns: list[str] | str | None = None,
        ignore_patterns: list[str] | str | None = None,
        delete_patterns: list[str] | str | None = None,
        with_encoder: bool = False,
        model_card_kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """Upload the model folder, with the login of huggingface_hub; returns the address of the commit.

        A repository that is made for it is private unless `private` says otherwise. Files of cells that were adapted
        before and are not any more are deleted there, and so are others that match `delete_patterns`.
        """
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        self.note(model_card_kwargs or {})
        deleted = [delete_patterns] if isinstance(delete_patterns, str) else list(delete_patterns or ())
        api = HfApi(token=token)
        with TemporaryDirectory() as scratch:
            folder = self.save(Path(scratch) / "model", with_encoder)
            try:
                name = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
                return str(
                    api.upload_folder(
                        repo_id=name,
                        folder_path=folder,
                        commit_message=commit_message,
                        revision=branch,
                        create_pr=create_pr,
                        allow_patterns=allow_patterns,
                        ignore_patterns=ignore_patterns,
                        delete_patterns=[*deleted, f"{checkpoint.ADAPTED}/*"],
                    )
                )
            except (HFValidationError, HfHubHTTPError, ValueError, OSError) as error:
                raise CheckpointError(
                    f"'{repo_id}': expected a repository of the hub that can be written; {first_line(error)}; log in "
                    f"with hf auth login, or save the model to a folder and upload that: hf upload {repo_id} FOLDER"
                ) from None


def find_model(
    name: str | Path,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    force_download: bool = False,
    local_files_only: bool = False,
    token: str | bool | None = None,
) -> Path:
    """The folder of a model: the path itself or, for a name of the hub, its copy in the hub's cache, fetched there.

    A stranger's repository is taken as data: nothing is fetched before its config.json is that of a crossfill model,
    and then only the files that a model folder has.
    """
    path = Path(name).expanduser()
    if path.exists() or not is_hub_name(str(name)):
        if revision is not None:
            raise CheckpointError(f"'{name}': expected a name of the hub, as there is a revision; got a folder")
        return path
    from huggingface_hub import hf_hub_download, snapshot_download

    options: dict[str, Any] = {
        "cache_dir": cache_dir,
        "force_download": force_download,
        "local_files_only": local_files_only,
        "token": token,
    }
    try:
        description = Path(hf_hub_download(str(name), checkpoint.DESCRIPTION, revision=revision, **options))
        checkpoint.read_description(description.parent)
        commit = description.parent.name  # all files of one commit, also if there is a new one by now
        snapshot_download(str(name), revision=commit, allow_patterns=_WANTED, ignore_patterns=["*/*/*"], **options)
    except CheckpointError as error:
        raise CheckpointError(f"model '{name}' of the hub: expected a crossfill model; {error}") from None
    except (OSError, ValueError) as error:
        raise _not_found(str(name), revision, local_files_only, error) from None
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
        reason, remedy = "as the hub has no such model, or not for you", "mend the name, or log in (hf auth login)"
    else:
        reason = f"as the hub was not reached ({first_line(error)})"
    return CheckpointError(
        f"model '{name}': expected a folder, or a model of the hub that is in {HF_HUB_CACHE} or can be fetched; found "
        f"neither, {reason}; {remedy}"
    )
