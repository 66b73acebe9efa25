"""Reading and checking settings, with errors that say where, what was expected, and the nearest valid name."""

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fujinsplat.core.errors import UserError

M = TypeVar("M", bound=BaseModel)


def nearest(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the list of valid names when none is close."""
    valid = [str(v) for v in valid]
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid names: {', '.join(valid)}" if valid else ""


def _fields_at(model: type[BaseModel], path: tuple) -> Iterable[str]:
    """Names that would have been valid where pydantic met an unknown key."""
    current: Any = model
    for part in path:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(str(part))
            current = field.annotation if field else None
        if not isinstance(current, type):  # dict[str, Model] and the like: take the model inside
            models = [a for a in getattr(current, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
            current = models[0] if models else None
    return current.model_fields if isinstance(current, type) and issubclass(current, BaseModel) else ()


def explain(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """One sentence per mistake: the key's path, what was expected, what stands there."""
    sentences = []
    for item in error.errors():
        path = tuple(item["loc"])
        dotted = ".".join([p for p in [where] if p] + [str(p) for p in path])
        if item["type"] == "extra_forbidden":
            valid = _fields_at(model, path[:-1])
            sentences.append(f"{dotted} is not a setting{nearest(str(path[-1]), valid)}")
        elif item["type"] == "missing":
            sentences.append(f"{dotted} is missing")
        elif item["type"] == "value_error":
            message = item["msg"].removeprefix("Value error, ")
            sentences.append(f"{dotted}: {message}" if dotted else message)
        else:
            sentences.append(f"{dotted} is {item['input']!r}: {item['msg'].lower()}")
    return "\n".join(sentences)


def checked(model: type[M], values: Any, where: str = "") -> M:
    """`values` as a `model`, or a UserError that names the key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserError(explain(error, model, where)) from None


def stage_settings(model: type[M], given: str | None) -> M:
    """A stage's settings from `--settings`: inline JSON/YAML, or the path of a file; only what differs is needed."""
    if not given:
        return model()
    text, where = given, "--settings"
    if not given.lstrip().startswith("{"):
        where = given
        try:
            text = Path(given).read_text()
        except OSError as error:
            raise UserError(
                f"--settings {given}: {error.strerror}; give inline JSON or an existing YAML file"
            ) from None
        except UnicodeDecodeError as error:
            raise UserError(f"{given} is no text ({error}); give inline JSON or a YAML file") from None
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    return checked(model, values or {}, where)


def dump_differences(settings: BaseModel) -> str:
    """What differs from the paper's values, as compact JSON: what rules pass on, so that only it triggers re-runs."""
    values = settings.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(values, sort_keys=True, separators=(",", ":"))
