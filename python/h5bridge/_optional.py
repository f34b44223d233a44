"""Packages that are imported when they are first needed; what to install where one is missing."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str) -> Any:
    """The module. Raises `ImportError` with the extra of `pip install` that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{package} is missing: pip install 'h5bridge[{extra}]'", name=package) from error
