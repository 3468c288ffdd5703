import numpy as np
import pytest

import tombola.attacks.neighbours as module
from tombola.attacks.neighbours import Vectors, embedded_neighbours, kept_table, nearest_rows, neighbours_of
from tombola.errors import DataError


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / "cache"))


def vectors(count=90, size=7):
    return np.random.default_rng(0).normal(size=(count, size)).astype(np.float32)


@pytest.mark.parametrize("block", [1, 32, 1024])
def test_blocks_find_what_brute_force_finds(block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    matrix = vectors()
    nearest, cosines = nearest_rows(matrix, 10)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    every = (unit @ unit.T).astype(float)
    np.fill_diagonal(every, -np.inf)
    order = np.argsort(-every, axis=1)[:, :10]
    assert np.array_equal(nearest, order)
    assert np.allclose(cosines, np.take_along_axis(every, order, axis=1), atol=1e-6)


def test_a_vocabulary_smaller_than_the_table():
    nearest, _ = nearest_rows(vectors(4), 50)
    assert nearest.shape == (4, 3)


def write(path, words, matrix, header=""):
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, matrix.tolist(), strict=True)]
    path.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")


def test_text_and_npz_give_the_same_table(tmp_path):
    words = [f"wört{i}" for i in range(90)]
    write(tmp_path / "glove.txt", words, vectors())
    write(tmp_path / "word2vec.txt", words, vectors(), header="90 7\n")
    np.savez(tmp_path / "vectors.npz", words=np.array(words), vectors=vectors())
    tables = [neighbours_of(tmp_path / name, k=5) for name in ("glove.txt", "word2vec.txt", "vectors.npz")]
    for table in tables:
        assert table.words == words
        assert np.array_equal(table.nearest, tables[0].nearest)
    best = tables[0].of("WÖRT7", 5)
    assert best == [words[i] for i in tables[0].nearest[7]]
    assert tables[0].of("wört7", 2) == best[:2]
    between = float(tables[0].cosines[7, 1:3].mean())
    assert tables[0].of("wört7", 5, at_least=between) == best[:2]
    assert tables[0].of("unheard", 5) == []


def test_a_word_may_have_blanks_in_it_as_some_of_gloves(tmp_path):
    words = ["film", ". . .", "at name@domain.com", "plot"]
    write(tmp_path / "glove.txt", words, vectors(4))
    assert neighbours_of(tmp_path / "glove.txt", k=3).words == words


def test_the_table_is_computed_once_for_the_same_content(tmp_path, monkeypatch):
    write(tmp_path / "a.txt", ["x", "y", "z"], vectors(3))
    first = neighbours_of(tmp_path / "a.txt", k=2)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    monkeypatch.setattr(module, "nearest_rows", lambda *_: pytest.fail("computed again"))
    assert np.array_equal(neighbours_of(tmp_path / "b.txt", k=2).nearest, first.nearest)
    with pytest.raises(pytest.fail.Exception):
        neighbours_of(tmp_path / "b.txt", k=1)
    write(tmp_path / "b.txt", ["x", "y", "w"], vectors(3))
    with pytest.raises(pytest.fail.Exception):
        neighbours_of(tmp_path / "b.txt", k=2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a 1 2\nb 3\n", ":2: 1 numbers"),
        ("a 1 2\nb 3 4 5\n", ":2: 3 numbers"),
        ("a 1 2\nb 3 x\n", ":2: expected a word"),
        ("a 1 2\n", "no word vectors"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path, content, reason):
    (tmp_path / "bad.txt").write_text(content)
    with pytest.raises(DataError, match=reason):
        neighbours_of(tmp_path / "bad.txt", k=5)


def test_missing_and_pickled_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="counter-fitted"):
        neighbours_of(tmp_path / "none.txt", k=5)
    np.savez(tmp_path / "pickled.npz", words=np.array(["a", "b"], dtype=object), vectors=vectors(2))
    with pytest.raises(DataError, match="words"):
        neighbours_of(tmp_path / "pickled.npz", k=5)


def test_the_embedded_table_knows_synonyms(monkeypatch):
    monkeypatch.setattr(
        module, "EMBEDDED_WORD", module.re.compile("movies?|films?|horrible|awful|terrible|tables?")
    )
    table = embedded_neighbours(k=3)
    assert sorted(table.words) == sorted(
        ["movie", "movies", "film", "films", "horrible", "awful", "terrible", "table", "tables"]
    )
    assert table.of("terrible", 2) in (["horrible", "awful"], ["awful", "horrible"])
    assert set(table.of("movie", 3)) == {"movies", "film", "films"}
    assert table.of("table", 3, at_least=0.5) == ["tables"]


def test_the_embedded_table_leaves_antonyms_out(monkeypatch):
    monkeypatch.setattr(module, "EMBEDDED_WORD", module.re.compile("good|bad|great|succeeds|fails|failed"))
    table = embedded_neighbours(k=5)
    assert {"bad", "great"} <= {table.words[i] for i in table.nearest[table.words.index("good")]}
    assert "great" in table.of("good", 5)
    assert "bad" not in table.of("good", 5)
    assert "good" not in table.of("Bad", 5)
    assert "failed" in table.of("fails", 5)
    assert "succeeds" not in table.of("fails", 5)


def test_a_damaged_table_is_computed_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path))
    vectors = Vectors(["a", "b", "c", "d"], np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
    first = kept_table("content", 2, "test", lambda: vectors)
    (file,) = tmp_path.glob("neighbours-*")
    whole = file.read_bytes()
    for place in range(8, len(whole), 5):
        caplog.clear()
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        table = kept_table("content", 2, "test", lambda: vectors)
        assert (table.words, table.cosines.tolist()) == (first.words, first.cosines.tolist())
        assert (table.nearest == first.nearest).all()
        assert "computed again" in caplog.text or whole[place : place + 1] == b" "
        assert file.read_bytes() == whole or whole[place : place + 1] == b" "
