"""Example provider, broken providers, and vendor servers."""

from __future__ import annotations

import sys
from pathlib import Path

_EXAMPLE = Path(__file__).parents[3] / "examples" / "tocsin-example-provider"
_RPC_EXAMPLE = _EXAMPLE.with_name("tocsin-example-rpc-provider")
_VENDORS = Path(__file__).parents[2] / "plugins" / "enrichers"
sys.path += [str(_EXAMPLE / "src"), str(_EXAMPLE / "tests"), str(Path(__file__).parent)]
sys.path += [str(_RPC_EXAMPLE / "src"), str(_RPC_EXAMPLE / "tests")]
sys.path.append(str(_VENDORS))
