"""Settings of the server: address, access and limits."""

from dataclasses import dataclass

from crossfill.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BYTES_PER_CHARACTER = 12  # two JSON escapes of six bytes, for a character outside the BMP
_BYTES_PER_WORD = 8
_BYTES_BESIDES = 2**16


@dataclass(frozen=True)
class ServeSettings:
    """Address, access and limits of a server."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 for any free port."""
    token: str | None = None
    """Token that clients send as `Authorization: Bearer …`; none admits everyone who can reach the port."""
    origins: tuple[str, ...] = ()
    """Other web sites whose pages may call the API (CORS)."""
    max_characters: int = 20_000
    max_words: int = 2_000
    max_samples: int = 500
    max_cells: int = 8
    queue: int = 256
    """Maximum number of waiting requests; more are rejected with 429."""
    batch_requests: int = 64
    """Maximum number of requests encoded together."""
    batch_characters: int = 40_000
    """Maximum of characters × cells encoded together."""
    timeout: float = 30.0
    """Seconds until a request without an answer gets 503, and one that has not fully arrived 408."""

    def __post_init__(self) -> None:
        lowest = {"port": 0, "max_samples": 0} | dict.fromkeys(
            ("max_characters", "max_words", "max_cells", "queue", "batch_requests", "batch_characters"), 1
        )
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if not self.timeout > 0:
            raise ConfigError(f"timeout: expected seconds above 0, got {self.timeout}")
        if self.port > 65535:
            raise ConfigError(f"port: expected at most 65535, got {self.port}")
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()):
            raise ConfigError(
                "token: expected at least 8 printable ASCII characters; make one with "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )

    @property
    def max_bytes(self) -> int:
        """Maximum size of a request's body."""
        return _BYTES_PER_CHARACTER * self.max_characters + _BYTES_PER_WORD * self.max_words + _BYTES_BESIDES

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK
