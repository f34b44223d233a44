"""An extension of griffe: examples in docstrings (`>>>`) are code wherever they stand."""
import re

from griffe import Extension

EXAMPLE = re.compile(r'^>>> .*(?:\n(?:>>>|\.\.\.).*)*', re.MULTILINE)


class Examples(Extension):
    def on_instance(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda match: '```pycon\n%s\n```' % match[0], obj.docstring.value)
