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


def test_an_english_text_with_a_name_in_japanese() -> None:
    assert detect_language(ENGLISH * 5 + "東京")[0] == "en"
