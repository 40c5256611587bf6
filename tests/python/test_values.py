"""JSON in and out: byte exact, or an error that names the place."""

import json
import math
import unittest

import runner  # noqa: F401 (it makes the modules importable)
from values import ValueRefused, decode, encode


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


class Hostile(dict):
    def __init__(self, what):
        super().__init__(a=1)
        self.what = what

    def items(self):
        return self.what()


class Encode(unittest.TestCase):
    def assertRefused(self, value, text):
        with self.assertRaises(ValueRefused) as caught:
            encode(value)
        self.assertEqual(str(caught.exception), text)

    def test_plain_values(self):
        for value in (
            None,
            True,
            False,
            0,
            -1,
            1.5,
            -0.0,
            1e300,
            5e-324,
            0.1,
            "",
            "a\"b\\\n\x00\x7f",
            "\u00e9\u20ac\U0001f600\ud800",
            [],
            {},
            [1, [2, {"a": [None]}]],
            {"a": {"b": {}}, "": 1},
        ):
            with self.subTest(repr(value)):
                self.assertEqual(encode(value), json.dumps(value, separators=(",", ":")))

    def test_integers_of_any_size(self):
        for value in (2**53 + 1, 2**64, -(2**200)):
            self.assertEqual(encode([value]), "[%d]" % value)

    def test_what_json_itself_converts(self):
        self.assertEqual(encode((1, (2,))), "[1,[2]]")
        self.assertEqual(encode({1: 2, None: 3, 1.5: 4, False: 5}),
                         '{"1":2,"null":3,"1.5":4,"false":5}')

    def test_subclasses_have_the_value_of_their_base(self):
        class Number(int):
            def __repr__(self):
                return "evil"

        class Text(str):
            def __str__(self):
                return "evil"

        class Floating(float):
            __repr__ = __str__ = Number.__repr__

        self.assertEqual(encode([Number(5), Text("x"), Floating(1.5)]), '[5,"x",1.5]')
        self.assertEqual(encode({Number(5): 1, Text("x"): 2, Floating(1.5): 3}),
                         '{"5":1,"x":2,"1.5":3}')

    def test_numbers_that_json_lacks(self):
        text = "Out of range float values are not JSON compliant: %s at %s"
        self.assertRefused(math.nan, text % ("nan", "$"))
        self.assertRefused({"a": [1, 2, 3, math.inf]}, text % ("inf", "$.a[3]"))
        self.assertRefused([{"a b": -math.inf}], text % ("-inf", '$[0]["a b"]'))
        self.assertRefused({"x": {math.nan: 1}},
                           "Out of range float values are not JSON compliant: nan as a key at $.x")

    def test_types_that_json_lacks(self):
        for value, name in (({1}, "set"), (b"x", "bytes"), (1j, "complex"), (object(), "object"),
                            (range(3), "range"), (encode, "function")):
            with self.subTest(name):
                self.assertRefused(
                    {"a": [value]}, "Object of type %s is not JSON serializable at $.a[0]" % name
                )

    def test_keys(self):
        text = "keys must be str, int, float, bool or None, not tuple at $.k"
        self.assertRefused({"k": {(1, 2): 3}}, text)
        for value, key in (
            ({1: 2, "1": 3}, "1"),
            ({True: 2, "true": 3}, "true"),
            ({None: 2, "null": 3}, "null"),
            ({1.5: 2, "1.5": 3}, "1.5"),
        ):
            with self.subTest(key):
                self.assertRefused([value], 'two keys become "%s" at $[0]' % key)

    def test_cycles(self):
        value = []
        value.append(value)
        self.assertRefused(value, "Circular reference detected at $[0]")
        value = {"a": []}
        value["a"].append((value, value))
        self.assertRefused({"x": value}, "Circular reference detected at $.x.a[0][0]")

    def test_a_shared_object_is_not_a_cycle(self):
        shared = {"a": [1]}
        self.assertEqual(encode([shared, shared]), '[{"a":[1]},{"a":[1]}]')

    def test_depth(self):
        self.assertEqual(encode(nested(500)), "[" * 500 + "]" * 500)
        with self.assertRaisesRegex(ValueRefused, r"^nested deeper than 500 at \$[\[\]0]+\.\.\.$"):
            encode(nested(501))

    def test_trouble_is_found_below_much_that_is_fine(self):
        value = [[index, {"a": index}] for index in range(1000)]
        value[777][1]["a"] = {2}
        self.assertRefused(value, "Object of type set is not JSON serializable at $[777][1].a")

    def test_a_long_place_is_cut(self):
        value = {"k" * 1000: {1}}
        with self.assertRaises(ValueRefused) as caught:
            encode(value)
        self.assertLess(len(str(caught.exception)), 300)

    def test_shared_objects_do_not_make_the_search_explode(self):
        good = [1]
        for _ in range(60):
            good = [good, good]  # written out it would never end
        self.assertRefused([{1}, good], "Object of type set is not JSON serializable at $[0]")
        self.assertRefused([good, {1}], "Object of type set is not JSON serializable at $[1]")

    def test_hostile_methods_give_json_or_an_error(self):
        self.assertEqual(encode(Hostile(lambda: [("b", 2)])), '{"b":2}')
        with self.assertRaises(ValueRefused):
            encode(Hostile(lambda: [("b", {2})]))
        for what in (lambda: [1], lambda: 1, lambda: 1 / 0, lambda: [(1, 2, 3)]):
            with self.assertRaises(Exception):
                encode(Hostile(what))


class Decode(unittest.TestCase):
    def test_values(self):
        text = '{"a":[1,-2.50,true,null,"\\u00e9\\ud83d\\ude00"],"b":{}}'
        self.assertEqual(decode(text), json.loads(text))

    def test_integers_keep_their_digits(self):
        self.assertEqual(decode("[%d]" % -(2**200)), [-(2**200)])

    def test_numbers_out_of_range(self):
        with self.assertRaisesRegex(ValueRefused, "^the number 1e999 is out of range$"):
            decode('{"a":1e999}')
        with self.assertRaises(ValueRefused):
            decode("[-1e400]")
        self.assertEqual(decode("[1e-400]"), [0.0])

    def test_constants_that_json_lacks(self):
        for text in ("NaN", "Infinity", "-Infinity"):
            with self.assertRaises(ValueRefused):
                decode("[%s]" % text)


if __name__ == "__main__":
    unittest.main()
