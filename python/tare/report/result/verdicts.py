# SPDX-License-Identifier: Apache-2.0
"""A result's verdicts.json: its model, and the only code that reads and writes it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from tare import __version__
from tare.atomic_files import replace
from tare.errors import InputError
from tare.native import commit
from tare.samples.manifest import Compare
from tare.samples.model import REQUEST
from tare.untrusted import MEBIBYTE, explained, read_json
from tare.verdict.judgement import LEVEL, Control, Cut, EffectSizes, Shape, Word, renamed
from tare.verdict.number_text import Unit
from tare.verdict.traces import Change, MixWord, OutsideRoot, SpanPart, StructureShare

if TYPE_CHECKING:
    from tare.verdict import Judgement

VERDICTS = "verdicts.json"
MOST_BYTES = 256 * MEBIBYTE
NotNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Part(BaseModel):
    """Numbers that are null do not exist; older verdicts lack keys that have a default here."""

    model_config = ConfigDict(frozen=True)


class Sides(Part):
    """The value of both sides: of a metric in its unit, else a number or a share."""

    baseline: NotNegative | None
    condition: NotNegative | None


class Runs(Part):
    """How many runs of each side count."""

    baseline: Count = 0
    condition: Count = 0


class Effect(Part):
    """How much more the condition has than the baseline."""

    relative: float | None = None
    """As a fraction; None of a share."""
    absolute_ns: float | None = None
    difference: float | None = None
    """In the unit of the metric."""


class Interval(Part):
    """Bounds of the effect."""

    low: float | None = None
    high: float | None = None
    level: Probability = LEVEL


class Compared(Part):
    """One `verdict.judgement.Comparison` as its `to_json` writes it."""

    environment: Annotated[str, BeforeValidator(lambda name: name or "")] = ""
    baseline: str = ""
    condition: str
    span: str = REQUEST
    metric: str
    role: str = ""
    budget: NotNegative = 0.0
    threshold: NotNegative = 0.0
    verdict: Word
    unit: Unit = "ns"
    values: Sides | None = None
    effect: Effect
    interval: Interval
    p: Probability | None = None
    p_adjusted: Probability | None = None
    p_equivalent: Probability | None = None
    runs: Runs
    mde: NotNegative | None = None
    runs_needed: Count | None = None
    runs_show: str | None = None
    effect_sizes: EffectSizes | None = None
    shape: Shape | None = None
    warm_up_cuts: tuple[Cut, ...] = ()
    reason: str = ""


class Structures(Part):
    """The structures of requests of one root span, and the verdict on their mix."""

    verdict: MixWord
    reason: str
    shares: tuple[StructureShare, ...]


class TracedRequests(Part):
    """One `verdict.traces.TraceComparison` as its `to_json` writes it."""

    environment: str = ""
    baseline: str = ""
    condition: str
    root: str
    requests: Sides | None = None
    broken: Sides | None = None
    """The share of requests that lack a span."""
    mean_ns: Change
    parts: tuple[SpanPart, ...]
    explained: str = ""
    """Empty in results of versions that did not write it."""
    structures: Structures


class Verdicts(Part):
    """What `tare compare --json` prints of a result, and who judged."""

    judged_by: str = ""
    """Version and commit of Tare; empty in results of versions that did not write it."""
    compare: Compare = "conditions"
    """What the conditions of `comparisons` are: see `samples.model.Experiment.compare`."""
    comparisons: tuple[Compared, ...]
    traces: tuple[TracedRequests, ...] = ()
    round_trips: tuple[OutsideRoot, ...] = ()
    controls: tuple[Control, ...] = ()
    smoke: bool = False
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _as_compared(cls, found: Any) -> Any:
        if not isinstance(found, dict) or found.get("compare") != "environments":
            return found
        kinds = {
            key: found.get(key) for key in ("comparisons", "controls", "traces", "round_trips")
        }
        return found | {
            key: [
                renamed(form, "environments") if isinstance(form, dict) else form
                for form in written
            ]
            for key, written in kinds.items()
            if isinstance(written, list)
        }


def read_verdicts(folder: Path) -> Verdicts | None:
    """The verdicts of a result folder; None where it was not judged yet.

    Raises InputError for what are no verdicts.
    """
    path = folder / VERDICTS
    try:
        return Verdicts.model_validate(read_json(path, MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = explained(error) if isinstance(error, ValidationError) else error
        raise InputError(
            f"{path}: not the verdicts of a result ({why}); remove it to have it judged again"
        ) from None


def stored_verdicts(folder: Path) -> dict[str, Any]:
    """The JSON of verdicts that were read or written before."""
    return dict(read_json(folder / VERDICTS, MOST_BYTES))


def write_verdicts(folder: Path, judgement: "Judgement", within: int | None = None) -> None:
    """Replaces the verdicts of a result folder; `within` is its descriptor. Raises OSError with the
    name of the file."""
    text = json.dumps({"judged_by": this_tare(), **judgement.to_json()}, indent=2)
    replace(folder / VERDICTS, f"{text}\n", within)


def this_tare() -> str:
    """What `judged_by` says of verdicts that are judged now."""
    return f"tare {__version__} (commit {commit()})"
