"""Words that are nearly another: how many letters apart they are. Pure; slow, for words that nothing has."""


def max_typos(word: str) -> int:
    """Return the number of letters that may differ in a word; none in short words and in numbers, where every
    character counts."""
    if len(word) < 4 or any(letter.isdigit() for letter in word):
        return 0
    return 1 if len(word) < 7 else 2


def is_too_far(one: str, other: str, limit: int) -> bool:
    """Report whether two words are further apart, seen at a glance: by their lengths and by which letters they have."""
    return abs(len(one) - len(other)) > limit or len(set(one) ^ set(other)) > 2 * limit


def edit_distance(one: str, other: str, limit: int) -> int:
    """Letters to put in, take out, change or swap with their neighbour to get from one word to the other; more than
    ``limit`` when that is not enough (Damerau-Levenshtein, optimal string alignment)."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    older: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, facing in enumerate(other, start=1):
            best = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (letter != facing))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == facing
            now.append(min(best, older[column - 2] + 1) if swapped else best)
        if min(now) > limit:
            return limit + 1
        older, last = last, now
    return last[-1]
