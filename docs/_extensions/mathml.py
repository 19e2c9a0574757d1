"""Formulas as MathML, which browsers draw by themselves: pages need no script, no font and no network.

A formula that cannot be converted is an error of the build.
"""

from __future__ import annotations

from docutils import nodes
from math_core import LatexToMathML
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# amsmath counts its equations; Sphinx numbers those that have a label itself.
CONVERTER = LatexToMathML(annotation=True)


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(CONVERTER.convert_with_local_state(node.astext(), displaystyle=False))
    raise nodes.SkipNode


def visit_displaymath(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own, with its number if it has a label."""
    translator.body.append('<div class="formula">')  # what is around it has the name
    translator.body.append(CONVERTER.convert_with_local_state(node.astext(), displaystyle=True))
    if node["number"]:
        translator.body.append(f'<a class="eqno" href="#{node["ids"][0]}">({node["number"]})</a>')
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
