"""JSON in and out without the json package, whose import costs more than the interpreter's start.

The C scanner and encoder that json is built on do the work; what they would change in silence
(numbers out of range, keys that become the same, cycles) is looked for here, and named by its
place. Values come from hostile code: nothing here trusts a method of theirs to be sane."""

from _json import encode_basestring_ascii as quote
from _json import make_encoder, make_scanner
from sys import implementation

MAX_DEPTH = 500
MAX_PLACE = 200

SCALARS = frozenset((str, int, float, bool, type(None)))
TEXT_ONLY = frozenset((str,))


class ValueRefused(Exception):
    """A value that JSON can't carry unchanged; the text says why and where."""


def _unsupported(value):
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


# No cycle markers, no indent, compact separators, keys not sorted or skipped, no NaN.
_encoder = make_encoder(None, _unsupported, quote, None, ":", ",", False, False, False)


def encode(value):
    """The value as ASCII JSON text; ValueRefused if it has no exact form."""
    reason = None
    if _is_odd(value):
        reason = _explain(value)
    if reason is None:
        try:
            return "".join(_encoder(value, 0))
        except (TypeError, ValueError, RecursionError) as error:
            reason = _explain(value) or str(error)
    raise ValueRefused(reason)


def _children(value):
    """The members of a container, as (keys or None, values); None for anything else. All of them
    are read as the C encoder reads them: by their storage, but dict's subclasses by items()."""
    if type(value) is dict:
        return list(value), list(value.values())
    if isinstance(value, dict):
        items = list(value.items())
        return [key for key, _ in items], [item for _, item in items]
    if isinstance(value, list):
        return None, list(list.__iter__(value))
    if isinstance(value, tuple):
        return None, list(tuple.__iter__(value))
    return None


def _is_odd(value):
    """True if the value needs a closer look. Level by level, so that depth is bounded and an
    object that is reached twice on a level is looked at once; members are tested by the set of
    their types, which runs at C speed over long lists of plain things."""
    level = [] if type(value) in SCALARS else [value]
    for _ in range(MAX_DEPTH):
        below = {}
        for container in level:
            members = _children(container)
            if members is None:
                if not isinstance(container, (str, int, float)):
                    return True
                continue
            keys, items = members
            if keys and not TEXT_ONLY.issuperset(map(type, keys)) and _key_trouble(keys):
                return True
            if not SCALARS.issuperset(map(type, items)):
                below.update((id(item), item) for item in items if type(item) not in SCALARS)
        level = list(below.values())
        if not level:
            return False
    return True


def _is_finite(number):
    return number - number == 0


def _key_text(key):
    """What the encoder makes of a key; None if it refuses it."""
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, float):
        return float.__repr__(key) if _is_finite(float(key)) else None
    if key is True or key is False or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    return int.__repr__(key) if isinstance(key, int) else None


def _key_trouble(keys):
    seen = set()
    for key in keys:
        text = _key_text(key)
        if text is None:
            if isinstance(key, float):
                return "Out of range float values are not JSON compliant: %r as a key" % float(key)
            name = type(key).__name__
            return "keys must be str, int, float, bool or None, not " + name
        if text in seen:
            return "two keys become %s" % quote(text[:MAX_PLACE])
        seen.add(text)
    return None


def _trouble(value, depth, active):
    """What is wrong with this one value, its members left aside; None if nothing is."""
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        if _is_finite(float(value)):
            return None
        return "Out of range float values are not JSON compliant: %r" % float(value)
    if not isinstance(value, (dict, list, tuple)):
        return "Object of type %s is not JSON serializable" % type(value).__name__
    if id(value) in active:
        return "Circular reference detected"
    if depth >= MAX_DEPTH:
        return "nested deeper than %d" % MAX_DEPTH
    if isinstance(value, dict):
        return _key_trouble(_children(value)[0])
    return None


def _step(key):
    text = _key_text(key)
    if text is None:
        return "[?]"
    if text.isascii() and text.isidentifier():
        return "." + text
    return "[" + quote(text) + "]"


def _members(value):
    """Pairs of a member's step in the place, and the member."""
    keys, items = _children(value) or (None, ())
    for index, item in enumerate(items):
        yield ("[%d]" % index if keys is None else _step(keys[index])), item


def _place(steps):
    text = "$" + "".join(steps)
    return text if len(text) <= MAX_PLACE else text[:MAX_PLACE] + "..."


def _explain(value):
    """Finds the first trouble, in the order of the document, and says where it is."""
    reason = _trouble(value, 0, ())
    if reason is not None:
        return "%s at $" % reason
    path = [(None, value, _members(value))]
    active = {id(value)}
    done = {}  # what held no trouble; kept alive, so that no id comes back
    while path:
        found = next(path[-1][2], None)
        if found is None:
            _, left, _ = path.pop()
            active.discard(id(left))
            done[id(left)] = left
            continue
        step, member = found
        reason = _trouble(member, len(path), active)
        if reason is not None:
            return "%s at %s" % (reason, _place([one[0] for one in path[1:]] + [step]))
        if isinstance(member, (dict, list, tuple)) and id(member) not in done:
            path.append((step, member, _members(member)))
            active.add(id(member))
    return None


def _float(text):
    value = float(text)
    if not _is_finite(value):
        raise ValueRefused("the number %s is out of range" % text[:MAX_PLACE])
    return value


def _constant(text):
    raise ValueRefused("%s is not JSON" % text)


_scanner = make_scanner(
    type(implementation)(
        strict=True,
        object_hook=None,
        object_pairs_hook=None,
        parse_float=_float,
        parse_int=int,
        parse_constant=_constant,
        memo={},
    )
)


def decode(text):
    """The value of one JSON document; ValueRefused for a number that no float can hold."""
    try:
        return _scanner(text, 0)[0]
    except StopIteration:
        raise ValueError("not a JSON document") from None
