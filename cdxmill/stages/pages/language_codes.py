"""Codes of languages: those of two letters (ISO 639-1) that the detection returns, and those of three letters (ISO 639-3).

Common Crawl's WARC-Identified-Content-Language has three letters.
"""

from __future__ import annotations

_PAIRS = """
af afr ar ara as asm az aze ba bak be bel bg bul bn ben bo bod br bre ca cat ce che cs ces cv chv cy cym da dan de deu dv div el ell en eng
eo epo es spa et est eu eus fa fas fi fin fo fao fr fra fy fry ga gle gd gla gl glg gu guj ha hau he heb hi hin hr hrv hu hun hy hye id ind
io ido is isl it ita ja jpn jv jav ka kat kk kaz km khm kn kan ko kor ku kur ky kir la lat lb ltz lt lit lv lav mg mlg mk mkd ml mal mn mon
mr mar mt mlt my mya ne nep nl nld no nor or ori pa pan pl pol ps pus pt por rm roh ro ron ru rus sa san sc srd sd snd si sin sk slk sl slv
so som sq sqi sr srp sv swe sw swa ta tam te tel tg tgk th tha tk tuk tl tgl tr tur tt tat ug uig uk ukr ur urd uz uzb vi vie vo vol yi yid
zh zho am amh an arg bs bos dz dzo ht hat lo lao ms msa nb nob nn nno oc oci qu que rw kin se sme wa wln xh xho zu zul
""".split()  # noqa: SIM905
THREE_LETTERS = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
"""
>>> THREE_LETTERS["zh"]
'zho'
"""
