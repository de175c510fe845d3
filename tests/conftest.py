"""What all tests share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_home_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither runs, settings nor presets of whoever runs the tests; the cache of the toy model is shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PPO_TUI_HOME", raising=False)
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


def pytest_collection_finish() -> None:
    """What is there by now stays: going through it again and again would be a fifth of the screens' time."""
    gc.freeze()
