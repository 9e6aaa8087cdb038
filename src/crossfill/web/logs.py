"""The log: one JSON object per line on standard error, never with anything a user sent."""

import json
import logging
import sys
import time
from typing import Any

_LOGGER = logging.getLogger("crossfill.web")


def log(level: str, event: str, **values: Any) -> None:
    """Log an event with its values."""
    _LOGGER.log(logging.getLevelNamesMapping()[level.upper()], event, extra={"values": values})


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record: time, level and event, then its values."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        found = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(found | getattr(record, "values", {}), ensure_ascii=False)


def set_up(quiet: bool = False) -> None:
    """Send the server's log to standard error; `quiet` keeps only warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("crossfill.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if quiet or name == "uvicorn.error" else logging.INFO)
