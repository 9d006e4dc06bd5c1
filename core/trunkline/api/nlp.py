"""Natural language: words, what texts have in common, and what they state or negate."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.nlp.polarity import is_negated as is_negated
    from trunkline._util.nlp.polarity import sentiment as sentiment
    from trunkline._util.nlp.polarity import topic_text as topic_text
    from trunkline._util.nlp.similarity import common_language as common_language
    from trunkline._util.nlp.similarity import concepts as concepts
    from trunkline._util.nlp.similarity import expand_query as expand_query
    from trunkline._util.nlp.similarity import similarity as similarity
    from trunkline._util.nlp.tokenizer import tokenize as tokenize
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
