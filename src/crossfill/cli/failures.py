"""What the system refused, such as a full disk, as a message with a remedy."""

import errno

_SPACE = "make room, or name a place on another disk (--out or $CROSSFILL_CACHE)"
_PERMISSION = "change its permissions, or name another place"
_REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: _SPACE,
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: _PERMISSION,
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is a file",
    errno.EISDIR: "name a file in that folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.ENFILE: "allow more open files: ulimit -n 4096",
    errno.ENOMEM: "free some memory, or ask for less at a time",
    errno.EIO: "check the disk",
    errno.ESTALE: "mount the disk again",
}


def describe(error: OSError) -> str:
    """One line on what the system refused, where, and what to do.

    >>> describe(OSError(errno.ENOSPC, "No space left on device", "model/config.json")).partition(";")[0]
    'model/config.json: No space left on device'
    """
    where = f"{error.filename}: " if error.filename is not None else ""
    remedy = _REMEDIES.get(error.errno or 0, "the system refused it; check the path and the disk, and run again")
    return f"{where}{error.strerror or error}; {remedy}"
