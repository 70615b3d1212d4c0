"""Wrapped attributes: each is wrapped once, calls go through, and everything is put back."""

from __future__ import annotations

import types

import pytest

from nbseed.patches import Patches


class Odd:
    """A value that nothing may be asked."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError("compared")

    def __bool__(self):
        raise ValueError("asked for its truth")

    def __repr__(self):
        raise ValueError("shown")

    def __getattr__(self, name):
        raise ValueError(name)


@pytest.fixture
def patches():
    made = Patches()
    yield made
    made.undo()


def library(**attributes):
    made = types.ModuleType("library")
    vars(made).update(attributes)
    return made


def double(x):
    return 2 * x


def plus_one(original):
    return lambda *args, **kwargs: original(*args, **kwargs) + 1


def test_an_attribute_is_wrapped_and_put_back(patches):
    owner = library(double=double)
    assert not patches
    patches.put(owner, "double", plus_one)
    assert (owner.double(4), owner.double(x=5), bool(patches)) == (9, 11, True)
    patches.undo()
    assert (owner.double is double, bool(patches)) == (True, False)


def test_a_second_wrap_of_the_same_attribute_does_nothing(patches):
    owner = library(double=double)
    patches.put(owner, "double", plus_one)
    wrapped = owner.double
    patches.put(owner, "double", plus_one)
    assert owner.double is wrapped
    patches.undo()
    assert owner.double is double


def test_an_attribute_that_somebody_has_wrapped_since_is_not_wrapped_again(patches):
    owner = library(double=double)
    patches.put(owner, "double", plus_one)
    theirs = owner.double = plus_one(owner.double)
    patches.put(owner, "double", plus_one)
    assert owner.double is theirs
    patches.undo()
    assert owner.double is theirs
    assert owner.double(4) == 10


@pytest.mark.parametrize("owner", [library(), library(double=None), type("Empty", (), {})])
def test_what_is_not_there_is_not_made(patches, owner):
    before = dict(vars(owner))
    patches.put(owner, "double", plus_one)
    assert not patches
    patches.undo()
    assert dict(vars(owner)) == before


def test_an_inherited_method_is_left_to_the_class_that_has_it(patches):
    class Base:
        def value(self):
            return 1

    class Child(Base):
        pass

    patches.put(Child, "value", plus_one)
    assert "value" not in vars(Child)
    patches.put(Base, "value", plus_one)
    assert (Base().value(), Child().value()) == (2, 2)
    patches.undo()
    assert (Base().value(), Child().value()) == (1, 1)


def test_one_function_at_two_places_gets_one_wrapper(patches):
    one, two = library(double=double), library(twice=double)
    patches.put(one, "double", plus_one)
    patches.put(two, "twice", plus_one)
    assert one.double is two.twice
    patches.undo()
    assert one.double is two.twice is double


def test_variables_bound_to_an_original_are_wrapped_and_put_back(patches):
    owner = library(double=double)
    names = {"double": double, "mine": double, "other": len, "unnamed": double}
    patches.put(owner, "double", plus_one)
    patches.alias(names, ("double", "mine", "other", "missing"))
    assert names["double"] is names["mine"] is owner.double
    assert (names["other"], names["unnamed"]) == (len, double)
    patches.undo()
    assert names == {"double": double, "mine": double, "other": len, "unnamed": double}


@pytest.mark.parametrize("now", [None, 3, len, Odd()], ids=["none", "number", "function", "odd"])
def test_a_variable_that_was_bound_anew_keeps_what_it_has(patches, now):
    names = {"double": double}
    patches.put(library(double=double), "double", plus_one)
    patches.alias(names, ("double",))
    names["double"] = now
    patches.undo()
    assert names["double"] is now


def test_a_variable_that_was_deleted_stays_away(patches):
    names = {"double": double}
    patches.put(library(double=double), "double", plus_one)
    patches.alias(names, ("double",))
    del names["double"]
    patches.undo()
    assert names == {}


def test_values_are_told_apart_by_identity_alone(patches):
    odd = Odd()
    owner, names = library(odd=odd, double=double), {"odd": odd, "other": Odd(), "double": double}
    patches.put(owner, "odd", lambda original: plus_one)
    patches.put(owner, "double", plus_one)
    patches.alias(names, tuple(names))
    assert names["odd"] is owner.odd is plus_one
    patches.undo()
    assert names["odd"] is owner.odd is odd
    assert names["double"] is owner.double is double


def test_a_wrap_that_fails_leaves_all_as_it_was(patches):
    def broken(original):
        raise KeyError("no wrapper")

    owner = library(double=double, other=double)
    with pytest.raises(KeyError, match="no wrapper"):
        patches.put(owner, "double", broken)
    assert owner.double is double
    assert not patches
    patches.put(owner, "double", plus_one)
    assert owner.double(1) == 3


def test_a_class_that_takes_no_attribute_is_no_patch(patches):
    with pytest.raises(TypeError):
        patches.put(int, "bit_length", plus_one)
    assert not patches
    assert (5).bit_length() == 3


def test_undo_ends_and_may_be_called_again(patches):
    owner, names = library(double=double), {"double": double}
    for _ in range(3):
        patches.put(owner, "double", plus_one)
        patches.alias(names, ("double",))
        assert (owner.double(1), names["double"](1)) == (3, 3)
        patches.undo()
        patches.undo()
        assert (owner.double, names["double"]) == (double, double)


def test_a_module_that_was_made_anew_inside_is_left_as_it_is(patches):
    owner = library(double=double)
    patches.put(owner, "double", plus_one)

    def again(x):
        return 3 * x

    owner.double = again  # as importlib.reload does
    patches.undo()
    assert owner.double is again
