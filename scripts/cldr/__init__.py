"""The generator of the built-in text: phrases and documents in two locales, from the Unicode CLDR through Babel.

`locales` renders a phrase in one language, `phrases` draws phrases and renders them in both languages, `documents`
makes documents of phrases, and `languages` makes the table of language codes. `scripts/cldr_text.py` is the command.
"""
