"""How the panel looks: swatches made of fingerprints, and a style sheet that fits any theme."""

from __future__ import annotations

LINE = 15
"""Pixels of a line of the ribbon, with the gap below its tile."""
THIN = 4
"""The same for a line of many sisters."""


def swatch(mark: str, title: str = "", height: int = LINE, parted: bool = False) -> str:
    """A tile made of the first three digits of a fingerprint: one of 16 patterns, one of 256 hues.

    The pattern tells states apart where colours cannot; the digits beside it or in its title are
    what counts.
    """
    hue = round(int(mark[1:3], 16) * 360 / 256)
    span = f";height:{height - 1}px" if height != LINE else ""
    said = f' title="{title}"' if title else ""
    return f'<i class="p{mark[0]}{" x" if parted else ""}" style="--h:{hue}{span}"{said}></i>'


_STRIPES = "repeating-linear-gradient({0},var(--b) 0 2px,var(--a) 2px 4px)"
_HALVES = "linear-gradient({0},var(--b) 50%,var(--a) 50%)"
_BAR = "linear-gradient(var({0}),var({0})) center/{1} no-repeat"
_PATTERNS = (
    "var(--a)",
    _HALVES.format("180deg"),
    _HALVES.format("90deg"),
    _HALVES.format("45deg"),
    _HALVES.format("135deg"),
    _STRIPES.format("0deg"),
    _STRIPES.format("90deg"),
    _STRIPES.format("45deg"),
    _STRIPES.format("135deg"),
    "radial-gradient(var(--b) 36%,var(--a) 40%)",
    "radial-gradient(var(--a) 36%,var(--b) 40%)",
    "conic-gradient(var(--b) 25%,var(--a) 0 50%,var(--b) 0 75%,var(--a) 0)",
    "conic-gradient(var(--b) 25%,var(--a) 0 50%,var(--b) 0 75%,var(--a) 0) 0 0/6px 6px",
    f"{_BAR.format('--b', '100% 30%')},{_BAR.format('--b', '30% 100%')},var(--a)",
    f"{_BAR.format('--b', '40% 40%')},var(--a)",
    f"{_BAR.format('--a', '56% 56%')},var(--b)",
)

_DARK = (
    "[data-jp-theme-light=false] {0},.vscode-dark {0},.vscode-high-contrast {0},"
    "html[theme=dark] {0}"
)

# Colours are those of the page; only the swatches have their own, the same in light and dark.
CSS = (
    """
.nbseed-panel{max-width:640px;padding:4px 6px;box-sizing:border-box;overflow:hidden}
.nbseed-panel .widget-html{margin:1px 0;min-width:0}
.nbseed-panel .widget-html-content{line-height:1.4;font-size:13px;overflow-wrap:break-word;
 overflow-x:auto}
.nbseed{color:inherit;font-size:13px;line-height:1.4}
.nbseed table{border-collapse:collapse;width:100%;margin:2px 0;color:inherit;font-size:12px;
 table-layout:auto;border:none}
.nbseed tr{background:none!important}
.nbseed td,.nbseed th{text-align:left!important;padding:2px 8px 2px 2px;vertical-align:top;
 border:none;background:none;max-width:none;white-space:normal}
.nbseed th{font-weight:600;opacity:.8;border-bottom:1px solid currentColor}
.nbseed code{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px;
 background:none!important;color:inherit;padding:0!important;white-space:nowrap}
.nbseed small{opacity:.75;font-size:11px;display:block}
.nbseed .g{border:1px solid currentColor;border-radius:3px;padding:0 4px;font-weight:700;
 font-size:11px;margin-left:4px}
.nbseed tr.j td{border-top:1px solid rgba(128,128,128,.35)}
.nbseed i{display:inline-block;--a:hsl(var(--h) 62% 60%);--b:hsl(var(--h) 70% 28%)}
.nbseed .s{width:36px;white-space:nowrap}
.nbseed td>i{width:15px;height:15px;margin:1px 0;vertical-align:middle}
.nbseed .d{font-weight:700;color:#d55e00}
.nbseed .bad{border-left:3px solid #d55e00;padding-left:6px}
.nbseed .good{border-left:3px solid #2a7fbf;padding-left:6px}
.nbseed pre{margin:0;font:inherit;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;
 background:none;color:inherit;padding:0}
.nbseed-ribbon{overflow-x:auto;overflow-y:hidden;align-items:flex-start}
.nbseed-ribbon,.nbseed-ribbon .widget-box{flex-direction:row-reverse;justify-content:flex-end}
.nbseed-ribbon .widget-box,.nbseed-ribbon .widget-html{margin:0;flex:none;overflow:visible;
 width:auto;height:auto}
.nbseed .c,.nbseed .l{display:flex;flex-direction:column;width:15px}
.nbseed .l{width:auto;padding-right:6px;font-size:11px;white-space:nowrap}
.nbseed .c b,.nbseed .l b{height:16px;line-height:16px;text-align:center;font-size:12px}
.nbseed .l b{text-align:left;font-weight:400;opacity:.8}
.nbseed .l span{height:15px;line-height:15px;overflow:hidden;text-overflow:ellipsis;
 max-width:150px}
.nbseed .c i{width:14px;height:14px;margin:0 0 1px}
.nbseed .c i.e{visibility:hidden}
.nbseed .c i.x{outline:2px solid #d55e00;outline-offset:-2px}
.nbseed .r{display:flex;overflow-x:auto}
.nbseed img{max-width:100%;height:auto}
.nbseed summary{cursor:pointer}
"""
    + "".join(
        f".nbseed i.p{digit:x}{{background:{pattern}}}\n" for digit, pattern in enumerate(_PATTERNS)
    )
    + _DARK.format(".nbseed img")
    + "{filter:invert(1) hue-rotate(180deg)}\n"
)

LIVE = ".nbseed-saved,.jp-OutputArea-child:has(.nbseed-saved){display:none}"
"""Hides the table that a saved notebook shows, as long as the panel itself is there."""
