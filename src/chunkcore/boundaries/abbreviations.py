"""Words with a full stop that ends no sentence, in some twenty languages; in lower case."""

from __future__ import annotations


def _words(*rows: str) -> frozenset[str]:
    return frozenset(" ".join(rows).split())


# Before a name or a number: their full stop ends no sentence.
NEVER = _words(
    "mr mrs ms mx dr prof rev hon gen col lt cpt capt cmdr sgt maj adm gov sen rep pres st ste mt ft fr messrs",
    "nr nos vol vols fig figs eq eqs sec ch pp cf vs viz eg ie e.g i.e approx op ed eds trans",
    "z.b d.h u.a bzw vgl ca dipl ing hr frl abs ziff rn rdn bspw evtl inkl sog i.v.m i.d.r",  # German
    "mmes mlle mme mgr chap pág págs sra srta sr. dña exmo núm avda av p.ej",  # French, Spanish, Portuguese
    "sig dott dott.ssa sig.ra avv geom pag pagg cfr artt",  # Italian
    "dhr mevr mw drs ir blz bijv t.ex bl.a f.eks jfr",  # Dutch, Swedish, Danish, Norwegian
    "ust ul pkt zob por np tj tzn tzw m.in św inż hab płk čl odst ods písm čís např napr tzv popř",  # Polish, Czech
    "mudr judr phdr rndr ifj özv kb ún krt alin pct dl dna",  # Slovak, Hungarian, Romanian
    "doç yrd bkz sok cad mah esim nro jl jln tn ny bpk hlm",  # Turkish, Finnish, Indonesian
    "ул пл просп пер кв корп им проф акад доц ст стр рис табл гл пп абз см ср напр вул ім див чл бр гр тел",
    "σελ βλ κ.κ π.χ δηλ",
    "डॉ प्रो श्री पं मो एम एन एस एल आर ডা ড মো ดร นพ พญ ผศ รศ",
    "tp ts ths gs pgs bs",  # Vietnamese
)
# Before a number only.
BEFORE_NUMBER = _words(
    "tab kap cap lit lett poz par str pos anm abb aufl bd tel kl klo godz hod sz bek old md mom luk jg jh sid",
    "obr rys rozdz dz sect para cl arts nn rz bl anl app ex reg no nos núms αρ άρθ พ.ศ",
    "janv févr avr juil déc ene abr dic genn febbr giu lug ott fev dez",  # months
)
# These end a sentence only before a word that often begins one.
SELDOM = _words(
    "no p art v ch jr sr inc ltd co corp llc plc bros dept univ assn est etc al a.m p.m ph.d b.a m.a m.d u.s u.k u.n",
    "e.u d.c jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun ave blvd",
    "rd hwy usw resp min max temp orig hrsg ud uds vd vds arch doc bc ks pl os itd itp atd apod osv enz ecc stb",
    "гг вв руб коп тыс млн млрд обл др т.д т.п",
)
ABBREVIATIONS = NEVER | BEFORE_NUMBER | SELDOM
# Units after a number, which end a sentence like other words.
UNITS = _words("г гг р м см км кг л")
# Words that often begin a sentence.
STARTERS = _words(
    "The This That These Those He She It They We You I In On At As But And For If When While After Before However",
    "A An His Her Its Their There Here Our My Your Since During By From With Although Though Because So Then Thus To",
    "What Who Where Why How Which Both Some Many Most Several Each All Another Other One Two Later Also Not No Yes",
    "Despite Following Under According Once Until Now Today Only Additionally Moreover Furthermore Nevertheless Or Nor",
    "Der Die Das Ein Eine Er Sie Es Wir Ich Im Und Aber Am An Auf Bei Mit Nach Seit Von Zu Zum Zur Als Wenn Da Dann",
    "Danach Diese Dieser Dieses Dort Doch Hier Heute Auch Nur Nun Noch Man Ihr Sein Seine Ihre Unser",
    "La Les Il Elle Un Une Ce Cette On Nous Vous El Los Las Una Es Se En Su Este Esta Pero Lo Gli È Nel Nella Si Non",
    "Os As Um Uma É Não Em To Jest Ten Ta Na Nie Po Je V Az Ez Egy",
    "Он Она Оно Они Это Эта Этот В На И Но Если Когда После Потом Так Как Там Мы Вы Я",
)
# German, before an ordinal number: "aus dem 19. Jahrhundert".
BEFORE_ORDINAL = _words(
    "der die das den dem des ein eine einem einen einer am im zum zur vom beim ins jeder jede jedes jeden sein seine",
    "seinem seinen ihr ihre ihrem ihren unser mein und bis oder sowie seit ab bin nach vor",
)
# German, after an ordinal number.
AFTER_ORDINAL = _words(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert",
    "Jahrhunderts Jh Stock Stockwerk Etage Kapitel Auflage Weltkrieg Geburtstag Klasse Spieltag Quartal Semester",
    "Sitzung Abschnitt Lebensjahr Runde Platz Woche Tag",
)
# What the number of a clause follows: "Art. 12. The seat is Oslo."
CLAUSE_LABELS = (
    "Art|Article|Artikel|Artículo|Articolo|Artigo|Artykuł|Section|Sec|Clause|Chapter|Kapitel|Kap|Chapitre|Capítulo"
    "|Capitolo|Part|Teil|Rule|Schedule|Annex|Appendix|Abschnitt|Paragraph|Para|Punkt|Pkt|Ziffer|Ziff|Nr|Madde|Pasal"
    "|Điều|Rozdział|Člen|Článek|Čl|Чл|Ст|Статья|Стаття|Глава|Раздел|Пункт|Title|Titre|Question|Step"
)
