"""What tests of several rooms share."""

import contextlib
import importlib.util
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before torch is loaded: test processes side by side, each with a thread a core, take twice the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Programs that tests start inherit what is ignored, as SIGHUP is under nohup.
with contextlib.suppress(ValueError, AttributeError):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Scripts that read comparisons need their room, which can be deleted.
collect_ignore_glob = [] if importlib.util.find_spec("nmt.compare") else ["test_study*.py"]

pytest_plugins = ["tests.shared_runs", "tests.chromium"]

# A busy machine may take any time over an example, or over making one. The examples are the same in each run, so that
# what passes here passes elsewhere; `--hypothesis-profile=explore` draws others.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("explore"), derandomize=True)
settings.load_profile("same")


@pytest.fixture
def corpora() -> Path:
    """The folder of real corpora (multi30k/, tatoeba/) that NMT_DATA names; without it the test is skipped."""
    folder = os.environ.get("NMT_DATA")
    if not folder:
        pytest.skip("NMT_DATA does not name a folder of corpora")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The state folder of these tests' user (`nmt.runs.trust`), for programs and processes of these tests as well."""
    from tests.shared_runs import once

    os.environ["XDG_STATE_HOME"] = str(once(tmp_path_factory, "state", lambda _: None))
