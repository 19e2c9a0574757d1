"""The documentation site; `make docs` builds it, and needs no network.

Pages are MyST Markdown. Notebooks are run when they changed, and one that fails is an error, as is every warning. What
can be said by the code is said by it: see `_extensions/generated.py`.
"""

import sys
from pathlib import Path

from meanfield import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "meanfield"
author = "the meanfield developers"
release = version = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "docstrings",
    "examples",
    "generated",
    "mathml",
]
exclude_patterns = ["_build", "_extensions", "_templates", "**/.ipynb_checkpoints", "conf.py", "*/make.py"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 4  # headings down to this level can be linked to by their words

# What a reader types has a button that copies it, without prompts; what is printed has none.
copybutton_selector = ", ".join(
    f"div.highlight-{language} pre" for language in ("python", "ipython3", "sh", "console", "toml")
)
copybutton_prompt_text = "$ "

nb_execution_mode = "cache"  # a notebook runs again when its code has changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300

# Names between single backticks in docstrings are links where they are objects of the reference, and code elsewhere.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", r"[\s\S]*")]  # code may be broken across lines
autodoc_typehints = "none"  # docstrings give types with shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of classes lists them

html_theme = "furo"
html_title = f"meanfield {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["accessible.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
