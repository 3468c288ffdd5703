"""What is remembered for a while: by equal arguments, or by the very same."""

from tombola.foundations.caching import cached_in_run, run_cache, shared, sharing


class Made:
    def __init__(self, *args: object, **kwargs: object) -> None:
        self.given = args, kwargs


def test_an_object_is_made_once_for_the_same_arguments():
    part = [1]
    with sharing():
        one = shared(Made, part, seed=300, name="a")
        assert shared(Made, part, seed=int("300"), name="a") is one
        assert one.given == ((part,), {"seed": 300, "name": "a"})
        assert shared(Made, [1], seed=300, name="a") is not one, "equal, but another list"
        assert shared(Made, part, seed=301, name="a") is not one
        assert shared(Made, part, size=300, name="a") is not one


def test_values_that_are_equal_but_of_different_types_are_told_apart():
    with sharing():
        made = [shared(Made, value) for value in (1, 1.0, True, "1")]
        assert [one.given[0][0] for one in made] == [1, 1.0, True, "1"]
        assert len(set(map(id, made))) == 4


def test_an_argument_that_is_gone_is_not_taken_for_a_new_one_in_its_place():
    with sharing():
        made = [shared(Made, [number]) for number in range(50)]  # each list would be free for the next
    assert [one.given[0][0] for one in made] == [[number] for number in range(50)]


def test_nothing_is_shared_outside_or_with_another_plan():
    part = [1]
    assert shared(Made, part) is not shared(Made, part)
    with sharing():
        one = shared(Made, part)
        with sharing():
            assert shared(Made, part) is one
    with sharing():
        assert shared(Made, part) is not one


def test_a_run_remembers_none_and_mappings_too():
    asked = []

    @cached_in_run
    def look(where: object) -> None:
        asked.append(where)

    with run_cache():
        for _ in range(2):
            look("a")
            look({"a": 1})
            look({"a": True})
    look("a")
    assert asked == ["a", {"a": 1}, {"a": True}, "a"]
