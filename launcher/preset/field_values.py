"""Single values of a preset: their paths in its file, the meaning of typed text, the reasons for a refusal."""

from collections.abc import Mapping
from typing import Any, get_origin

from launcher.core.errors import UserError
from launcher.core.text import did_you_mean, hint_of
from launcher.preset import layers, yaml_text
from launcher.preset.layers import Layer
from launcher.preset.schema import BY_KEY, FIELDS, SETTINGS
from launcher.preset.yaml_text import Where
from launcher.verl import hydra, versions

_NULLS = ("null", "~")


def where_of(name: str) -> Where:
    """The path for a field, environment variable or veRL key, with or without `+`. Raises UserError for others."""
    group, _, rest = name.partition(".")
    if name in FIELDS and name not in layers.MAPPINGS:
        return FIELDS[name].path
    if group == "usual" and rest:
        return "usual", layers.usual_name(rest, None, "new key")
    if group in layers.FREE and rest:
        return (group, rest) if group == "env" else tuple(name.split("."))
    _, key = hydra.split_key(name.removeprefix("overrides."), "new key")
    newest = versions.newest(key)
    if newest in BY_KEY:
        return BY_KEY[newest].path
    if key.partition(".")[0] not in layers.ROOTS:
        raise UserError(f"'{name}' is not a preset field or a veRL key", hint_of(layers.near_name(name)))
    return "overrides", newest


def field_named(key: str) -> str:
    """The preset field for a field's name or any veRL's key, with or without `+`. Raises UserError."""
    bare = key.lstrip("+")
    if bare in FIELDS:
        return bare
    if (spec := BY_KEY.get(versions.newest(bare))) is not None:
        return spec.name
    raise UserError(f"'{key}' is not a preset field", hint_of(layers.near_name(bare), layers.LISTED))


def typed(where: Where, text: str) -> Any:
    """The value of a typed text; text fields need no quotes."""
    text, spec = text.strip(), SETTINGS.get(".".join(where))
    if where[0] == "env":
        return text
    if spec is None:
        return yaml_text.value_of(text)
    if str in spec.types and not text.startswith(("[", '"', "'")):
        return None if text in _NULLS and spec.nullable else text
    lists = any(get_origin(kind) is list for kind in spec.types)
    value = yaml_text.value_of(text)
    if spec.kind == "command" and isinstance(value, str):
        return text.split()
    if lists and isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def errors(layer: Layer) -> dict[Where, str]:
    """The refused values of a layer, with reasons."""
    return {where: why for where, entry in layer.items() if (why := _wrong(where, entry.value))}


def _wrong(path: Where, value: Any) -> str | None:
    spec = FIELDS.get(".".join(path))
    if spec is None:
        return _unsayable(value) if path[0] == "overrides" else None
    if spec.allows(value):
        return None
    near = did_you_mean(value, spec.choices) if isinstance(value, str) else ""
    return f"{value!r} is not allowed{near}; use {spec.allowed}"


def _unsayable(value: Any) -> str | None:
    try:
        hydra.quote(value)
    except UserError as error:
        return str(error)
    return None


def unhealthy(settings: Any) -> dict[Where, str]:
    """The refused values of a preset's `health`, with reasons."""
    from launcher.preset.alerting import check_health

    def wrong(settings: Mapping[str, Any]) -> str:
        try:
            check_health(settings)
        except UserError as error:
            return str(error)
        return ""

    if not isinstance(settings, Mapping) or not (why := wrong(settings)):
        return {}
    parts = ((str(name), wrong({name: value})) for name, value in settings.items())
    return {("health", name): said for name, said in parts if said} or {("health",): why}
