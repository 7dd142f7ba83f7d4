"""`suanli.why`."""

from __future__ import annotations

import inspect
from typing import Any

from suanli.api.counting import count
from suanli.api.keeping import keeps_request
from suanli.api.measuring import mfu
from suanli.api.training import train
from suanli.errors import Fault, InputError, unknown_name
from suanli.formulas import all_formulas
from suanli.nouns.reason import Why
from suanli.nouns.result import Result
from suanli.nouns.workload import option
from suanli.why import QUANTITIES, Quantity, explain_count, explain_formula, explain_mfu, explain_train, known_ids


@keeps_request
def why(id: str | None = None, model: Any = None, **options: Any) -> Result:
    """Formula, legend and source of a quantity or formula; with a model, the numbers put in.

    `options` are those of the quantity's verb. Raises UnknownNameError with the nearest ids.

    >>> why("params.total", "gpt2").value
    124439808
    """
    if id is None:
        return reasons_known()
    quantity = QUANTITIES.get(id)
    if quantity is None and id not in known_ids():
        raise unknown_name("quantity", id, known_ids(), where="ID", hint="`suanli why` lists them.")
    given = {name: value for name, value in options.items() if value is not None}
    if quantity is None or (model is None and not given):
        found, base = _bare(id), None
    else:
        base = _verb(quantity.verb)(model, **_of_verb(quantity, given))
        found = _explained(id, quantity.verb, base)
    return Result(
        kind="why",
        inputs={"id": id, "model": model if isinstance(model, str) else None, **given},
        convention=base.convention if base else None,
        result=found,
        uncounted=base.uncounted if base else (),
        sources=base.sources if base else (found.source,),
        notes=base.notes if base else (),
    )


def _bare(id_: str) -> Why:
    """A formula, or a quantity told without numbers."""
    quantity = QUANTITIES.get(id_)
    if quantity is None or quantity.formula == id_:
        return explain_formula(id_)
    try:
        return explain_formula(quantity.formula)
    except InputError:  # a sum over rows has no formula of its own
        return Why(
            id=id_, doc=quantity.doc, formula=quantity.formula, source="the rows name theirs", legend={},
            unit=quantity.unit,
        )  # fmt: skip


def _of_verb(quantity: Quantity, given: dict[str, Any]) -> dict[str, Any]:
    """The options, all of the quantity's verb. Raises InputError naming those that are another's."""
    takes = set(inspect.signature(_verb(quantity.verb)).parameters)
    foreign = [name for name in given if name not in takes]
    if foreign:
        raise InputError(
            Fault(
                code="foreign_option",
                message=f"{quantity.id} comes from `suanli {quantity.verb}`, which does not take all options given",
                where=", ".join(option(name) for name in foreign),
                expected="options of " + quantity.verb,
                nearest=tuple(each.id for each in QUANTITIES.values() if set(given) <= _options(each.verb))[:3],
            )
        )
    return given


def _options(verb: str) -> set[str]:
    return set(inspect.signature(_verb(verb)).parameters)


def _verb(name: str) -> Any:
    return {"count": count, "mfu": mfu, "train": train}[name]


def _explained(id_: str, verb: str, base: Result) -> Why:
    if verb == "count":
        asked = base.asked
        return explain_count(id_, asked["arch"], asked["workload"], asked["convention"], base.result)
    if verb == "mfu":
        return _valued(explain_mfu(id_, base.asked["arch"], base.result), base.result.reason)
    budget = base.asked["budget"]
    found = explain_train(id_, base.result, {"price": budget.price, "power": budget.power, "pue": budget.pue})
    return _valued(found, base.result.reasons.get(id_))


def _valued(found: Why, reason: str | None) -> Why:
    """The explanation, unless there is nothing to explain: then the reason why."""
    if found.value is None:
        raise InputError(
            Fault(
                code="no_value",
                message=f"{found.id} has no value",
                where="ID",
                got=reason or "nothing that gives it",
            )
        )
    return found


def reasons_known() -> Result:
    """Every id `why` answers, with what it is."""
    rows = {quantity.id: quantity.doc for quantity in QUANTITIES.values()}
    rows |= {formula.id: formula.doc for formula in all_formulas().values() if formula.id not in rows}
    found = Why(
        id="ids", doc="quantities of a model, then formulas", formula="", source="the registry", legend={},
        values=rows,
    )  # fmt: skip
    return Result(kind="why", inputs={}, result=found)
