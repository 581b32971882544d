"""Languages with a script of their own are found in texts with many English words, too."""

from __future__ import annotations

import pytest

from cdxmill.stages.pages.decode_text import detect_language

ENGLISH = "The package manager installs and removes software: apt install nginx, systemctl restart nginx. "
TEXTS = {
    "ja": "パッケージの管理システムについて説明します。この章では設定ファイルを扱います。",
    "zh": "本章介绍软件包管理系统以及配置文件的处理方法，并说明如何安装新的软件。",
    "ko": "이 장에서는 패키지 관리 시스템과 설정 파일에 대해 설명합니다.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_with_many_english_words(language: str) -> None:
    assert detect_language((TEXTS[language] + ENGLISH) * 3) == (language, 1.0)


@pytest.mark.parametrize(
    ("parts", "language"),
    [
        ({"\ud55c": 9, "\u672c": 8}, "ko"),  # hangul with many Chinese characters, as older texts have
        ({"\ud55c": 8, "\u672c": 9}, "zh"),
        ({"\ud55c": 9, "\u672c": 9}, "zh"),
        ({"\uac00": 9, "\u672c": 8}, "ko"),
        ({"\u306e": 2, "\u672c": 9}, "ja"),
        ({"\u306e": 1, "\u672c": 9}, "zh"),  # a tenth is no more than quotations may have
        ({"\u306e": 1, "\u672c": 8}, "ja"),
        ({"\u672c": 2, "a": 17}, "zh"),
        ({"\u30ff": 2, "\u672c": 9}, "ja"),
    ],
)
def test_the_share_of_its_characters_decides(parts: dict[str, int], language: str) -> None:
    # Every eighth character is looked at.
    text = "".join(letter * 8 * count for letter, count in parts.items())
    assert detect_language(text) == (language, 1.0)


def test_a_tenth_of_its_characters_is_no_language() -> None:
    assert detect_language("\u672c" * 16 + "a" * 8 * 18).confidence < 1


@pytest.mark.parametrize("text", ["", "123 4,567.89", "\u2460 \u2461 \u20ac 5"])
def test_a_text_without_letters_has_no_language(text: str) -> None:
    assert detect_language(text) == ("", 0.0)


def test_an_english_text_with_a_name_in_japanese() -> None:
    assert detect_language(ENGLISH * 5 + "東京")[0] == "en"
