"""Telling English texts from others, so that no English word list is used on them."""

from pathlib import Path

import pytest

from tombola.tasks import Task
from tombola.tasks.inferring import infer_task, init_task
from tombola.tasks.languages import known_share, recognised_language

OTHERS = {
    "German": [
        "Der Film ist leider viel zu lang und die Handlung bleibt bis zum Schluss vorhersehbar.",
        "Großartige Schauspieler, wunderbare Bilder und eine Geschichte, die lange nachwirkt.",
        "Das Produkt kam pünktlich an, war aber beschädigt und der Kundendienst hat nicht geantwortet.",
    ],
    "German with English terms": [
        "Das Update auf Windows 10 ist ein Desaster, der Support antwortet nicht und das Ticket ist seit Wochen open.",
        "Login mit Google Account geht nicht, App stürzt nach dem Start ab.",
        "Server down seit gestern, bitte Reset vom Router.",
    ],
    "French": [
        "Le film est beaucoup trop long et l'intrigue reste prévisible jusqu'à la fin.",
        "Le produit est arrivé à temps mais il était abîmé et le service client n'a jamais répondu.",
        "Une comédie sensible et originale, avec une distribution impressionnante.",
    ],
    "Spanish": [
        "La película es demasiado larga y la trama resulta previsible hasta el final.",
        "El producto llegó a tiempo pero estaba dañado y el servicio al cliente nunca respondió.",
        "Una comedia sensible y original con un reparto impresionante.",
    ],
    "Spanish without accents": [
        "muy mala pelicula no la recomiendo a nadie",
        "me encanto el final super emocionante",
        "no sirve se rompio al segundo dia",
    ],
    "Russian": ["Фильм слишком длинный, а сюжет предсказуем до самого конца."] * 3,
    "Chinese": ["电影太长了,情节从头到尾都可以预料。"] * 12,
    "Arabic": ["الفيلم طويل جدا والقصة متوقعة حتى النهاية."] * 4,
}
JARGON = [
    "Login with google account fails, app crashes after startup on Win10 x64.",
    "pls fix asap thx, getting 500 err on the api since v2.3",
    "pt c/o SOB and chest pain x3 days, hx of CABG, on metoprolol and lisinopril",
    "Ferrari's Schumacher wins in Melbourne ahead of Barrichello and Montoya",
]


@pytest.mark.parametrize("name", OTHERS)
def test_other_languages_are_not_english(name: str) -> None:
    share = known_share(OTHERS[name])
    assert share is not None
    assert share < 0.45
    assert recognised_language(OTHERS[name])[0] == "und"


@pytest.mark.parametrize("task", ["reviews", "reviews_newspaper", "reviews_product", "reviews_tweets"])
def test_reviews_are_english(task: str) -> None:
    texts = [text for (text,) in Task.named(task).load("train").texts]
    share = known_share(texts)
    assert share is not None
    assert share > 0.88
    assert recognised_language(texts[:20]) == ("en", [])


def test_jargon_is_english() -> None:
    share = known_share(JARGON)
    assert share is not None
    assert share > 0.6


def test_a_few_words_do_not_tell() -> None:
    assert known_share(["schöner Film"]) is None
    assert recognised_language([]) == ("en", [])


def test_a_data_file_that_is_not_english_gets_no_english_word_list(tmp_path: Path) -> None:
    data = tmp_path / "kritiken.csv"
    rows = [f'"{text} {n}",{"gut" if n % 2 else "schlecht"}' for n in range(8) for text in OTHERS["German"]]
    data.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    found = infer_task(data)
    assert found.task.language == "und"
    assert not found.task.english
    (note,) = [note for note in found.notes if note.startswith("language: not English (")]
    assert f"# {note}" in found.path.read_text(encoding="utf-8")
    assert infer_task(data, ("text",), "label").task.language == "und"  # the file that is there
    for language in ("en", "de"):  # what the user says holds
        assert init_task(data, replace=True, language=language).task.language == language
