"""Small pieces of SVG and HTML: elements, scales and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

AttributeValue = str | float | int


def element(name: str, *children: str, **attributes: AttributeValue) -> str:
    """Return an element; `children` are markup. A `_` in an attribute's name is `-`, at its end nothing.

    >>> element("text", "a", x=1.25, class_="small")
    '<text x="1.25" class="small">a</text>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{given}>{''.join(children)}</{name}>"


def text(content: str) -> str:
    """Return `content` as markup."""
    return escape(content)


def _text(value: AttributeValue) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high` to places from `start` to `stop`; values outside go to the ends."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        bend: Callable[[float], float] = math.log if self.logarithmic else float
        bounded = min(max(value, self.low), self.high)
        share = (bend(bounded) - bend(self.low)) / ((bend(self.high) - bend(self.low)) or 1.0)
        return self.start + share * (self.stop - self.start)


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return at most about `most` round values from `low` to `high`.

    >>> ticks(0, 100, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    rough = max(high - low, 1e-9) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * float(step), 9) for number in range(first, last + 1)]


def x_axis(scale: Scale, values: Iterable[float], y: tuple[float, float], name: str, unit: str = "") -> str:
    """Return vertical grid lines between the two `y`, their values below, and the axis's name."""
    top, bottom = y
    parts = []
    for value in values:
        place = scale(value)
        parts.append(element("line", x1=place, x2=place, y1=top, y2=bottom, class_="grid"))
        parts.append(element("text", text(f"{value:g}{unit}"), x=place, y=bottom + 16, text_anchor="middle"))
    middle = (scale.start + scale.stop) / 2
    parts.append(element("text", text(name), x=middle, y=bottom + 34, text_anchor="middle"))
    return "".join(parts)


def y_axis(scale: Scale, values: Iterable[float], x: tuple[float, float]) -> str:
    """Return horizontal grid lines between the two `x`, with their values on the left."""
    left, right = x
    return "".join(
        element("line", x1=left, x2=right, y1=scale(value), y2=scale(value), class_="grid")
        + element("text", text(f"{value:g}"), x=left - 6, y=scale(value) + 4, text_anchor="end")
        for value in values
    )


def drawing(width: float, height: float, title: str, *parts: str) -> str:
    """Return an SVG drawing that fits the page's width."""
    return element(
        "svg",
        element("title", text(title)),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )
