"""The token of a run's own Ray, which would otherwise write one to ~/.ray, and end where the home cannot be written.

Ray 2.60: `ray/_private/authentication/authentication_token_setup.py: ensure_token_if_auth_enabled`.
"""

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.machine.ray_jobs import authentication, token
from launcher.verl.config import ray_address


def ray_authentication(file: Path, keys: Mapping[str, Any]) -> dict[str, str]:
    """What the driver's environment needs for a run with these veRL keys.

    A user without a token gets one that lives as long as the run. The driver has it in its environment, where it
    survives a folder that is moved; `file` has it for `RAY_AUTH_TOKEN_PATH=... ray status`.
    """
    address = ray_address(keys)
    if address != "local":
        return authentication() if address else {}
    if os.environ.get("RAY_AUTH_MODE") or token():
        return {}
    made = secrets.token_hex(32)
    with contextlib.suppress(OSError):  # a full disk
        file.touch(mode=0o600)
        file.write_text(made)
    return {"RAY_AUTH_TOKEN": made}
