"""`make watch FRAMEWORK=... SOURCE=...` lists what a checkout logs and a table lacks."""

from pathlib import Path

from framework_watch import unknown

from launcher.metrics.frameworks import Framework, Name

TABLE = Framework("x", module="x", metrics=(Name(("kl",), source="x/a.py: log"), Name(("old",), source="x/a.py: gone")))
CODE = """
def log(self, mode):
    config = self.args["size"]
    self._metrics[mode]["kl"].append(1)
    self._metrics[mode]["fresh"].append(config)
    self.all["set"] = 2
    tracker.log({"logged": 3})
"""


def test_names_that_a_table_lacks_and_functions_that_are_gone_are_listed(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.py").write_text(CODE)

    assert list(unknown(TABLE, tmp_path)) == [
        "gone  x/a.py: gone",
        *(f"new   {name}  (x/a.py: log)" for name in ("fresh", "logged", "set")),
    ]
