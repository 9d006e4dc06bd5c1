"""Natural language: words, similarity of texts, sentiment and negation."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.nlp.languages import STOP_WORDS as STOP_WORDS
    from trunkline._util.nlp.languages import language_of as language_of
    from trunkline._util.nlp.polarity import is_negated as is_negated
    from trunkline._util.nlp.polarity import sentiment as sentiment
    from trunkline._util.nlp.polarity import topic_text as topic_text
    from trunkline._util.nlp.similarity import common_language as common_language
    from trunkline._util.nlp.similarity import concepts as concepts
    from trunkline._util.nlp.similarity import expand_query as expand_query
    from trunkline._util.nlp.similarity import similarity as similarity
    from trunkline._util.nlp.stemmer import ENGLISH as ENGLISH
    from trunkline._util.nlp.stemmer import LONGEST as LONGEST
    from trunkline._util.nlp.stemmer import WordStemmer as WordStemmer
    from trunkline._util.nlp.synonyms import synonyms as synonyms
    from trunkline._util.nlp.titles import make_title as make_title
    from trunkline._util.nlp.tokenizer import fold_case as fold_case
    from trunkline._util.nlp.tokenizer import has_spaceless_script as has_spaceless_script
    from trunkline._util.nlp.tokenizer import is_spaceless as is_spaceless
    from trunkline._util.nlp.tokenizer import query_tokens as query_tokens
    from trunkline._util.nlp.tokenizer import strip_accents as strip_accents
    from trunkline._util.nlp.tokenizer import tokenize as tokenize
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
