"""Settings of the server: address, access and limits."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from crossfill.errors import ConfigError
from crossfill.settings import Count, Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_CELLS = 8  # in a request
MAX_WORK = 10_000_000  # characters × cells × posterior samples in a request
BATCH_WORK = 4_000_000  # the same of requests that are tagged together


class ServeSettings(Settings):
    """Address, access and limits of a server."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """0 for any free port."""
    token: str | None = None
    """Token that clients send as `Authorization: Bearer …`; none admits everyone who can reach the port."""
    no_token: bool = False
    """Serve other machines without a token, too: everyone who can reach the port may use the model."""
    allow_hosts: tuple[Annotated[str, Field(pattern=r"^[^A-Z/:\[\]@ ]+$")], ...] = ()
    """Names besides localhost that requests may be for; if there are any, no other is answered on any address."""
    origins: tuple[str, ...] = ()
    """Other web sites whose pages may call the API (CORS)."""
    max_characters: Count = 20_000
    max_words: Count = 2_000
    max_samples: Annotated[int, Field(ge=0)] = 500
    max_document_bytes: Count = 2**23
    """Maximum size of what annotation tools send: markup takes more room than its text, and comes in many texts."""
    teach: Path | None = None
    """Folder for corrected sentences; without one, nothing that requests do changes anything."""
    learn_every: Annotated[int, Field(ge=0)] = 10
    """New sentences after which a cell learns by itself; 0: it does not."""
    queue: Count = 256
    """Maximum number of waiting requests; more are rejected with 429."""
    batch_requests: Count = 64
    """Maximum number of requests encoded together."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds until a request without an answer gets 503, and one that has not fully arrived 408."""

    @model_validator(mode="after")
    def _check_access(self) -> "ServeSettings":
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()):
            raise ConfigError(
                "token: expected at least 8 printable ASCII characters; make one with "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if self.token is None and not self.is_local:
            what = f"on {self.host}; put one into $CROSSFILL_TOKEN"
            if not self.no_token:
                raise ConfigError(f"host: expected a token to serve others {what}, or let everyone in with --no-token")
            if self.teach is not None:
                raise ConfigError(f"teach: expected a token to be taught from other machines {what}")
        return self

    @property
    def max_bytes(self) -> int:
        """Maximum size of a request's body: a character may be two JSON escapes of six bytes."""
        return 12 * self.max_characters + 8 * self.max_words + 2**16

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK
