"""The generator of the built-in text: phrases and documents in two locales, from the Unicode CLDR through Babel.

`locales` writes a phrase in one language, `phrases` draws phrases and pairs the two languages, `documents` joins some
to documents, and `languages` makes the table of language codes. `scripts/cldr_text.py` is the command line.
"""
