"""The key `price` of an arm in a study file: what a node costs in an hour, "3.06 USD"."""

from __future__ import annotations

from paribus.border import Place, fields
from paribus.core import Keys, Study, parse_price


def price_of(place: Place) -> dict[str, str]:
    """Return the price of a node of the arm at `place`."""

    def price(value: object) -> str:
        parse_price(text := fields.text(value))
        return text

    return {"price": place.read("price", price, "")}


def check_prices(top: Place, study: Study) -> None:
    """Refuse prices that cannot be compared: of some arms only, or in several currencies."""
    priced = [arm for arm in study.arms if arm.price]
    if priced and len(priced) < len(study.arms):
        free = next(arm for arm in study.arms if not arm.price)
        fix = "give every arm one, or none"
        top.refuse(
            f"arms.{free.name}.price", None, f"is missing, and {priced[0].name} has one", fix
        )
    for arm in priced:
        ours, theirs = (parse_price(one.price)[1] for one in (priced[0], arm))
        if ours != theirs:
            place, fix = f"arms.{arm.name}.price", "convert the prices to one currency"
            top.refuse(place, arm.price, f"the price of {priced[0].name} is in {ours}", fix)


KEYS = Keys(arm=price_of, check=check_prices)
