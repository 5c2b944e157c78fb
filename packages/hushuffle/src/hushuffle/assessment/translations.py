"""Write the information for respondents in English, German, French and Spanish, with controller and purpose."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from hushuffle.assessment.statement import ReportPage
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Translation
from hushuffle.specification.exposure import factor

_MISSING: Final = {
    "English": {"who": "[organisation]", "what": "[purpose]", "contact": "[contact]"},
    "Deutsch": {"who": "[Organisation]", "what": "[Zweck]", "contact": "[Kontakt]"},
    "Français": {"who": "[organisation]", "what": "[finalité]", "contact": "[contact]"},
    "Español": {"who": "[organización]", "what": "[finalidad]", "contact": "[contacto]"},
}
_CODES: Final = {"English": "en", "Deutsch": "de", "Français": "fr", "Español": "es"}
_INTRO: Final = {
    "English": "{who} asks you. Purpose: {what}. Questions and objections: {contact}.",
    "Deutsch": "{who} befragt Sie. Zweck: {what}. Fragen und Widerspruch: {contact}.",
    "Français": "{who} vous interroge. Finalité : {what}. Questions et opposition : {contact}.",
    "Español": "{who} le pregunta. Finalidad: {what}. Preguntas y oposición: {contact}.",
}
_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "Deutsch": {
        "as-it-is": "Ihr Gerät sendet Ihre Antwort unverändert.",
        "noise": "Ihr Gerät verändert Ihre Antwort zufällig, bevor es sie sendet.",
        "kept": "Das geschieht einmal: Das Gerät bewahrt das Ergebnis auf und sendet es jedes Mal. Ändert sich Ihre "
        "Antwort, so zieht es ein neues, und wer zwei Veröffentlichungen vergleicht, kann das bemerken.",
        "named": "Selbst wenn alles, was Sie senden, mit Ihrem Namen gelesen würde, änderten sich die Chancen jeder "
        "Vermutung über Sie höchstens um den Faktor {factor}.",
        "readable": "Würde alles, was Sie senden, mit Ihrem Namen gelesen, so wären Ihre Antworten praktisch lesbar.",
        "sums": "Mehrere Server{run} zählen alle Nachrichten zusammen; keiner von ihnen kann Ihre allein lesen.",
        "shuffle": "Eine Mischstelle{run} entfernt die Namen und mischt alle {n} Nachrichten.",
        "run": " ({name})",
        "release": "Die Veröffentlichung ändert die Chancen jeder Vermutung über Sie höchstens um den Faktor {factor}, "
        "außer mit einer Wahrscheinlichkeit von 1 zu {times}, selbst für jemanden, der alle anderen Antworten kennt.",
        "open": "Aus der Veröffentlichung können Ihre Antworten praktisch lesbar sein.",
        "rounds": "Das gilt für alle {rounds} Befragungen zusammen.",
        "hidden": "Dass Sie teilnehmen, wird nicht verborgen.",
    },
    "Français": {
        "as-it-is": "Votre appareil envoie votre réponse telle quelle.",
        "noise": "Votre appareil modifie votre réponse au hasard avant de l'envoyer.",
        "kept": "Il le fait une seule fois, conserve le résultat et l'envoie chaque fois. Si votre réponse change, il "
        "en tire un autre, et quiconque compare deux publications peut s'en apercevoir.",
        "named": "Même si tout ce que vous envoyez était lu avec votre nom, les chances de toute conclusion à votre "
        "sujet changeraient au plus d'un facteur {factor}.",
        "readable": "Si tout ce que vous envoyez était lu avec votre nom, vos réponses seraient pratiquement lisibles.",
        "sums": "Des serveurs{run} additionnent tous les messages ; aucun d'eux ne peut lire le vôtre à lui seul.",
        "shuffle": "Un mélangeur{run} retire les noms et mélange les {n} messages.",
        "run": " ({name})",
        "release": "Ce qui est publié change les chances de toute conclusion à votre sujet au plus d'un facteur "
        "{factor}, sauf avec une probabilité de 1 sur {times}, même pour quelqu'un qui connaît toutes les autres "
        "réponses.",
        "open": "Dans ce qui est publié, vos réponses peuvent être pratiquement lisibles.",
        "rounds": "Cela vaut pour l'ensemble des {rounds} enquêtes.",
        "hidden": "Le fait que vous participiez n'est pas caché.",
    },
    "Español": {
        "as-it-is": "Su dispositivo envía su respuesta tal como es.",
        "noise": "Su dispositivo cambia su respuesta al azar antes de enviarla.",
        "kept": "Lo hace una sola vez, guarda el resultado y lo envía cada vez. Si su respuesta cambia, obtiene otro, "
        "y quien compare dos publicaciones puede notarlo.",
        "named": "Aunque todo lo que usted envía se leyera con su nombre, las probabilidades relativas de cualquier "
        "conclusión sobre usted cambiarían como máximo en un factor de {factor}.",
        "readable": "Si todo lo que usted envía se leyera con su nombre, sus respuestas serían prácticamente legibles.",
        "sums": "Varios servidores{run} suman todos los mensajes; ninguno de ellos puede leer el suyo por sí solo.",
        "shuffle": "Un mezclador{run} quita los nombres y mezcla los {n} mensajes.",
        "run": " ({name})",
        "release": "Lo que se publica cambia las probabilidades relativas de cualquier conclusión sobre usted como "
        "máximo en un factor de {factor}, salvo con una probabilidad de 1 entre {times}, incluso para quien conozca "
        "todas las demás respuestas.",
        "open": "En lo que se publica, sus respuestas pueden ser prácticamente legibles.",
        "rounds": "Esto vale para las {rounds} encuestas en conjunto.",
        "hidden": "El hecho de que usted participe no se oculta.",
    },
}
_MARKS: Final = {"Deutsch": (".", ","), "Français": ("\N{NO-BREAK SPACE}", ","), "Español": (".", ",")}


def translations(page: ReportPage, english: tuple[str, ...]) -> tuple[Translation, ...]:
    """In four languages, with placeholders for missing [statement] entries."""
    if not english:
        return ()
    given = {"who": page.names.controller, "what": page.names.purpose, "contact": page.names.contact}
    results = []
    for language, intro in _INTRO.items():
        words = {key: (value or _MISSING[language][key]).rstrip(".") for key, value in given.items()}
        body = _said(page, language) if language in _TEXTS else english
        sentences = (intro.format(**words), *body)
        results.append(Translation(language=language, code=_CODES[language], sentences=sentences))
    return tuple(results)


def _said(page: ReportPage, language: str) -> Iterator[str]:
    texts, exposure, central, local = _TEXTS[language], page.exposure, page.central, page.local

    def times(bound: Bound) -> str:
        return _local(factor(bound.upper).removeprefix("a factor "), language)

    if local is None or math.isinf(local.upper):
        yield texts["as-it-is"]
    else:
        yield texts["noise"]
        if exposure.stored:
            yield texts["kept"]
        yield texts["named"].format(factor=times(local)) if times(local) else texts["readable"]
    who = page.names.shuffler
    run = texts["run"].format(name=who) if who else ""
    if page.reveals is Reveals.SUMS:
        yield texts["sums"].format(run=run)
    elif page.reveals is not Reveals.SENDERS:
        yield texts["shuffle"].format(run=run, n=_local(f"{page.population.n:,}", language))
    if central is not None:
        inverse = _local(f"{max(1, math.floor(1 / page.delta * (1 + 1e-12))):,}", language)
        yield texts["release"].format(factor=times(central), times=inverse) if times(central) else texts["open"]
    if exposure.rounds > 1:
        yield texts["rounds"].format(rounds=_local(f"{exposure.rounds:,}", language))
    yield texts["hidden"]


def _local(number: str, language: str) -> str:
    """A number with the decimal and thousands separators of the language.

    >>> _local("12,000", "Deutsch"), _local("1.77", "Español")
    ('12.000', '1,77')
    """
    thousands, point = _MARKS[language]
    return "".join({",": thousands, ".": point}.get(letter, letter) for letter in number)
