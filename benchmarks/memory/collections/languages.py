# ruff: noqa: E501  a sentence is one line
"""Notes in German, French and Spanish: facts about people, in the words of each language, one file a person.

A question names the person and asks in other words than the note uses; every note has the same kinds of facts.
"""

from dataclasses import dataclass
from random import Random

from benchmarks.memory.collections.collection import Collection, Document, Question

PEOPLE = (
    "Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Irene", "Jan", "Klara", "Louis", "Maria",
    "Nora", "Oscar", "Paula", "Quentin", "Raquel", "Simon", "Teresa", "Ulla", "Victor", "Wanda", "Xavier", "Yvonne",
)  # fmt: skip
CITIES = (
    "Lyon",
    "Bremen",
    "Sevilla",
    "Gent",
    "Porto",
    "Basel",
    "Nantes",
    "Kassel",
    "Bilbao",
    "Graz",
    "Lille",
    "Ulm",
)


@dataclass(frozen=True, slots=True)
class Language:
    """The sentences of a language: the heading of a note, statements with ``{name}`` and one value, questions with
    ``{name}``, the values of each, and sentences without a fact.
    """

    name: str
    facts: tuple[tuple[str, str, tuple[str, ...]], ...]
    fillers: tuple[str, ...]


GERMAN = Language(
    "German notes",
    (
        ("Seit dem Frühjahr wohnt {name} mit den Kindern in {value}.", "In welcher Stadt lebt {name}?", CITIES),
        ("Auf {value} muss beim Kochen verzichtet werden, {name} verträgt das überhaupt nicht.", "Wogegen ist {name} allergisch?",
         ("Erdnüsse", "Sellerie", "Milchprodukte", "Weizen", "Krabben", "Soja", "Erdbeeren")),
        ("Im Verein spielt {name} donnerstags {value} und gewinnt erstaunlich oft.", "Welchen Sport betreibt {name}?",
         ("Tischtennis", "Schach", "Handball", "Volleyball", "Badminton", "Hockey")),
        ("Die Werkstatt hat {name} für das Auto {value} Euro in Rechnung gestellt.", "Wie viel kostete die Reparatur von {name}?",
         ("430", "615", "780", "925", "1140", "1310")),
        ("Zum Geburtstag wünscht sich {name} dieses Jahr {value}.", "Welches Geschenk möchte {name} haben?",
         ("eine Nähmaschine", "ein Fernglas", "einen Schlafsack", "eine Gitarre", "ein Mikroskop", "einen Grill")),
        ("{name} arbeitet nach der Ausbildung nun als {value} im Krankenhaus nebenan.", "Welchen Beruf hat {name}?",
         ("Hebamme", "Apotheker", "Koch", "Gärtnerin", "Elektriker", "Buchhalterin")),
    ),
    (
        "Das Treffen der Nachbarn wurde auf die kommende Woche verschoben, weil niemand Zeit hatte.",
        "Wer eine Stadt besucht, sollte die Kirche, den Markt und den Fluss gesehen haben.",
        "Beim Sport ist eine Pause so wichtig wie die Übung, sagen die Trainer im Verein.",
        "Geschenke werden in der Familie erst nach dem Essen ausgepackt, so war es immer.",
        "Die Kosten einer Reparatur erfährt man am besten vorher, und zwar schriftlich.",
        "Eine Allergie erkennt man oft erst nach Jahren, ein Test beim Arzt schafft Klarheit.",
        "Ein Beruf, den man gern hat, macht auch an langen Tagen weniger müde.",
        "Am Abend haben alle noch lange in der Küche gesessen und über den Sommer gesprochen.",
    ),
)  # fmt: skip

FRENCH = Language(
    "French notes",
    (
        ("Depuis le printemps, {name} habite avec les enfants à {value}.", "Dans quelle ville vit {name} ?", CITIES),
        ("Il faut cuisiner sans {value}, {name} ne les supporte pas du tout.", "À quoi {name} est-il allergique ?",
         ("arachides", "crustacés", "produits laitiers", "noisettes", "fraises", "lentilles")),
        ("Le jeudi, {name} joue {value} au club et gagne étonnamment souvent.", "Quel sport pratique {name} ?",
         ("au ping-pong", "aux échecs", "au handball", "au volley", "à la pétanque", "au hockey")),
        ("Le garage a facturé {value} euros à {name} pour la voiture.", "Combien a coûté la réparation de {name} ?",
         ("430", "615", "780", "925", "1140", "1310")),
        ("Pour son anniversaire, {name} voudrait cette année {value}.", "Quel cadeau {name} souhaite-t-il recevoir ?",
         ("une machine à coudre", "des jumelles", "un sac de couchage", "une guitare", "un microscope", "un barbecue")),
        ("Après sa formation, {name} travaille comme {value} à l'hôpital voisin.", "Quel est le métier de {name} ?",
         ("sage-femme", "pharmacien", "cuisinier", "jardinière", "électricien", "comptable")),
    ),
    (
        "La réunion des voisins a été reportée à la semaine prochaine, parce que personne n'avait le temps.",
        "Qui visite une ville devrait voir l'église, le marché et la rivière.",
        "Dans le sport, la pause compte autant que l'exercice, disent les entraîneurs du club.",
        "Dans la famille, on ouvre les cadeaux après le repas, il en a toujours été ainsi.",
        "Le prix d'une réparation se demande avant, et par écrit.",
        "On découvre souvent une allergie après des années, un test chez le médecin donne la réponse.",
        "Un métier que l'on aime fatigue moins, même pendant les longues journées.",
        "Le soir, tout le monde est resté longtemps dans la cuisine à parler de l'été.",
    ),
)  # fmt: skip

SPANISH = Language(
    "Spanish notes",
    (
        ("Desde la primavera {name} reside con los niños en {value}.", "¿En qué ciudad vive {name}?", CITIES),
        ("Hay que cocinar sin {value}, porque a {name} le sientan fatal.", "¿A qué es alérgica la persona {name}?",
         ("cacahuetes", "mariscos", "lácteos", "avellanas", "fresas", "lentejas")),
        ("Los jueves {name} juega {value} en el club y gana sorprendentemente a menudo.", "¿Qué deporte practica {name}?",
         ("al tenis de mesa", "al ajedrez", "al balonmano", "al voleibol", "a la petanca", "al hockey")),
        ("El taller le cobró a {name} {value} euros por el coche.", "¿Cuánto costó la reparación de {name}?",
         ("430", "615", "780", "925", "1140", "1310")),
        ("Para su cumpleaños, {name} desea este año {value}.", "¿Qué regalo quiere recibir {name}?",
         ("una máquina de coser", "unos prismáticos", "un saco de dormir", "una guitarra", "un microscopio", "una parrilla")),
        ("Tras la formación, {name} trabaja ahora como {value} en el hospital vecino.", "¿Qué profesión tiene {name}?",
         ("comadrona", "farmacéutico", "cocinero", "jardinera", "electricista", "contable")),
    ),
    (
        "La reunión de los vecinos se aplazó a la semana próxima, porque nadie tenía tiempo.",
        "Quien visita una ciudad debería ver la iglesia, el mercado y el río.",
        "En el deporte, la pausa es tan importante como el ejercicio, dicen los entrenadores del club.",
        "En la familia los regalos se abren después de comer, siempre ha sido así.",
        "El precio de una reparación se pregunta antes, y por escrito.",
        "Una alergia se descubre a menudo después de años, una prueba del médico da la respuesta.",
        "Una profesión que gusta cansa menos, también en los días largos.",
        "Por la noche todos se quedaron mucho tiempo en la cocina hablando del verano.",
    ),
)  # fmt: skip


def collection(language: Language) -> Collection:
    """Return the notes of a language. Each file is a week with facts about some people."""
    random = Random(23)
    facts = [(number, name) for number in range(len(language.facts)) for name in PEOPLE]
    random.shuffle(facts)
    documents, questions = [], []
    for week in range(len(facts) // 2):
        id = f"{language.name.split()[0].lower()}-{week}.md"
        lines = random.sample(language.fillers, 4)
        for number, name in facts[2 * week : 2 * week + 2]:
            statement, question, values = language.facts[number]
            lines.append(statement.format(name=name, value=random.choice(values)))
            questions.append(Question(question.format(name=name), (frozenset({id}),)))
        random.shuffle(lines)
        documents.append(Document(id, "\n\n".join(lines)))
    return Collection(language.name, questions, documents=documents)
