# ruff: noqa: E501  a sentence is one line
"""What people say of their lives: statements with a fact, questions about it in other words, requests and advice.

A request and the advice use the words of the topic without its fact, as the answers of an assistant do: they are what a
search finds in place of the fact.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from string import Formatter

SLOTS: Mapping[str, tuple[str, ...]] = {
    "pet": ("dog", "cat", "parrot", "rabbit", "tortoise", "hamster", "pony", "ferret"),
    "petname": ("Miso", "Biscuit", "Pepper", "Juno", "Waffles", "Ziggy", "Clover", "Nori", "Bandit", "Poppy"),
    "city": ("Porto", "Gdansk", "Ghent", "Turin", "Aarhus", "Leipzig", "Bergen", "Seville", "Tartu", "Graz", "Malmo"),
    "country": ("Iceland", "Vietnam", "Morocco", "Chile", "Georgia", "Nepal", "Portugal", "Japan", "Namibia", "Oman"),
    "month": ("January", "March", "April", "June", "July", "September", "October", "November"),
    "job": ("nurse", "carpenter", "translator", "surveyor", "baker", "pharmacist", "teacher", "welder", "archivist"),
    "company": ("Northwind", "Halden", "Brightwater", "Kestrel", "Orchard Lane", "Vantage", "Maplegate", "Ironbridge"),
    "food": ("peanuts", "shellfish", "gluten", "strawberries", "soy", "sesame", "lactose", "celery", "mustard"),
    "instrument": ("cello", "trumpet", "accordion", "harp", "banjo", "clarinet", "viola", "oboe", "ukulele"),
    "car": ("Volvo", "Fiat", "Skoda", "Subaru", "Renault", "Mazda", "Citroen", "Honda", "Opel"),
    "colour": ("green", "yellow", "silver", "burgundy", "turquoise", "orange", "beige", "navy"),
    "sport": ("climbing", "rowing", "fencing", "archery", "badminton", "judo", "surfing", "curling"),
    "plant": ("tomatoes", "lavender", "rhubarb", "courgettes", "sunflowers", "garlic", "basil", "figs"),
    "author": ("Le Guin", "Sebald", "Atwood", "Calvino", "Mantel", "Achebe", "Borges", "Woolf", "Saramago"),
    "relative": ("sister", "brother", "aunt", "uncle", "niece", "nephew", "cousin", "grandmother"),
    "name": ("Ingrid", "Tomas", "Priya", "Malik", "Elena", "Jonas", "Yuki", "Rosa", "Owen", "Leila", "Marek", "Ada"),
    "amount": ("240", "375", "512", "690", "845", "1,150", "1,320", "1,980", "2,400", "3,600"),
    "day": ("the 3rd", "the 7th", "the 11th", "the 14th", "the 19th", "the 22nd", "the 26th", "the 28th"),
    "doctor": ("Okafor", "Lindqvist", "Moreau", "Petrov", "Castellano", "Huang", "Bauer", "Nakamura"),
    "tool": ("Obsidian", "Trello", "Emacs", "Figma", "Notion", "Blender", "Ableton", "Lightroom"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. Statements and questions have slots; a question has only slots that tell which fact it is about."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]
    requests: tuple[str, ...]
    advice: tuple[str, ...]


TOPICS: tuple[Topic, ...] = (
    Topic(
        (
            "By the way, we adopted a {pet} last weekend and the kids named it {petname}.",
            "My {pet} {petname} has been chewing everything since we brought it home from the shelter.",
        ),
        ("What is my {pet} called?", "Remind me of the name that we gave our {pet}."),
        ("How do I get a {pet} used to a new home?", "Write me a short checklist for the first visit to the vet."),
        (
            "A new pet needs a quiet corner, a fixed time for meals and a few days to get used to the sounds of the home.",
            "Whatever name you have given your animal, say it in a friendly voice and reward it when it looks at you.",
            "A dog or a cat from a shelter has often lived with other people, so be patient in the first weeks.",
            "The vet will check the teeth, the ears and the weight, and will ask what the animal is called and how old it is.",
        ),
    ),
    Topic(
        (
            "We are finally moving: the keys to the flat in {city} are ours from {month}.",
            "I signed the lease for a place in {city} and the move is planned for {month}.",
        ),
        ("Where will I be living after the move?", "To which city are we relocating?"),
        ("Give me a packing plan for a flat with three rooms.", "What do people usually forget when they move house?"),
        (
            "When you move to another city, register your new address, redirect the post and tell your bank and insurance.",
            "Pack room by room, write the room on two sides of each box, and keep a bag with what you need on the first day.",
            "Living in a new place feels strange for some weeks; find one café and one park that become yours.",
            "Ask the landlord for a protocol of the handover with the state of each room and the numbers of the meters.",
        ),
    ),
    Topic(
        (
            "For our anniversary I booked two weeks in {country}, we fly on {day} of {month}.",
            "The tickets to {country} are paid, departure is {day} of {month}, and I am nervous about the flight.",
        ),
        ("When does our flight to {country} leave?", "On which date do we depart for {country}?"),
        ("Make a packing list for two weeks of travel.", "How can I sleep on a long flight?"),
        (
            "For a trip of two weeks take layers rather than thick clothes, and leave a third of the suitcase empty.",
            "Check in online a day before the departure, and be at the airport two hours before the flight leaves.",
            "An anniversary trip needs less of a programme than you think: one plan a day is enough.",
            "Keep copies of the tickets, of the passports and of the booking in your mail, and one on paper.",
        ),
    ),
    Topic(
        (
            "I start as a {job} at {company} soon and have to commute then.",
            "Good news, {company} hired me, they needed a {job} in the night shift.",
        ),
        ("Who is my new employer?", "Which company did I get the job at?"),
        ("Help me to write a farewell mail to my colleagues.", "What should I ask on the first day of a new job?"),
        (
            "On the first day of a job listen more than you speak, note the names, and ask your manager what matters in the first month.",
            "A farewell mail is short: thanks, one memory that you share, and an address at which people reach you.",
            "A new employer wants your papers for taxes and insurance, so have them ready before the first week.",
            "A commute is easier with a fixed ritual, such as a podcast on the way there and silence on the way back.",
        ),
    ),
    Topic(
        (
            "Please keep in mind that I cannot eat {food}, my face swells up.",
            "The test came back and it says I react badly to {food}.",
        ),
        ("What am I allergic to?", "Which food do I have to avoid because of my allergy?"),
        ("Suggest a dinner for six people.", "What can I cook in advance for a picnic?"),
        (
            "With guests, ask in time whether anybody has an allergy or does not eat something, and cook one dish for everybody.",
            "For a picnic take food that is good at any temperature: flat bread, roasted vegetables, a hard cheese, fruit.",
            "A dinner for six is best with one pot: a stew wins with time and leaves you at the table.",
            "Many people avoid a food because of an intolerance and not because of an allergy; a test tells which it is.",
        ),
    ),
    Topic(
        (
            "I took up the {instrument} again after ten years, my fingers hurt.",
            "Since spring I have been taking lessons on the {instrument} every Thursday evening.",
        ),
        ("Which musical instrument am I learning?", "What do I play in my music lessons?"),
        ("How long should I practise a day as a beginner?", "Explain the circle of fifths to me."),
        (
            "Twenty minutes of practice a day are better than two hours on a Sunday, because hands learn while you sleep.",
            "The circle of fifths orders the keys by how many sharps or flats they have; neighbours share all notes but one.",
            "An instrument that is out of its case is played more often, so leave it where you see it.",
            "Record a lesson with your teacher and listen to it once before you play; you hear more than you feel.",
        ),
    ),
    Topic(
        (
            "The old car died, so we bought a used {colour} {car} with a warranty.",
            "I drive a {car} now, a {colour} one, and the gearbox makes a noise.",
        ),
        ("What make is the car that we own?", "Which brand of vehicle do I drive?"),
        ("What do I check before a long drive?", "Is it worth repairing a gearbox?"),
        (
            "Before a long drive check the oil, the tyres, the lights and the water for the windscreen.",
            "A noise in the gearbox of a used vehicle can be cheap, if it is the oil, or cost more than the car is worth.",
            "A warranty of a dealer covers defects that were there when you bought the vehicle, not wear.",
            "The make of a car says less about its repairs than its years and how it was driven.",
        ),
    ),
    Topic(
        (
            "My {relative} {name} gets married on {day} of {month} and I am supposed to give a speech.",
            "{name}, my {relative}, invited us to the wedding on {day} of {month}.",
        ),
        ("When is the wedding of {name}?", "On what day does {name} marry?"),
        ("How do I begin a wedding speech?", "What is a good present for a couple that has everything?"),
        (
            "A wedding speech has three minutes: who you are, one story that shows the couple, and a wish at the end.",
            "A couple that has everything enjoys time more than things: a dinner, a day trip, or a class for two.",
            "An invitation to a wedding is answered within two weeks, with the number of guests who come.",
            "If a relative gets married abroad, ask early for a hotel that is close to the party.",
        ),
    ),
    Topic(
        (
            "On Tuesdays and Fridays I go {sport} with {name}, so no meetings after five.",
            "I joined a club for {sport} because {name} would not stop talking about it.",
        ),
        ("With whom do I do {sport}?", "Who is my partner for {sport}?"),
        ("Make a plan to get fit in eight weeks.", "How do I avoid sore muscles?"),
        (
            "A plan of eight weeks begins with three short sessions a week and adds a tenth each week, with one easy week in the middle.",
            "Sore muscles come from movements that are new to you; sleep and walking help more than stretching.",
            "A partner for sport makes it twice as likely that you go on a day on which you do not want to.",
            "A club is cheaper than a gym in most towns, and people notice when you are not there.",
        ),
    ),
    Topic(
        (
            "The landlord wants {amount} euros for the deposit, and I paid it yesterday.",
            "I transferred the deposit of {amount} euros for the flat today.",
        ),
        ("How much was the deposit for the flat?", "What sum did I pay to the landlord?"),
        ("Draft a letter to a landlord about a broken heating.", "How do I make a budget for a household?"),
        (
            "A deposit belongs in an account of its own, and the landlord pays it back after the flat was handed over.",
            "A letter about a defect names the room, the day on which it began, and a date by which it must be repaired.",
            "A budget begins with what is paid each month: rent, insurance, transport; what is left is divided by four.",
            "Pay a larger sum by transfer and never in cash, because the receipt is what counts later.",
        ),
    ),
    Topic(
        (
            "Doctor {doctor} says that the knee will heal without an operation.",
            "I have to see doctor {doctor} again on {day} because of my knee.",
        ),
        ("Which doctor looks after my knee?", "Who treats my knee?"),
        ("Which exercises strengthen the knee?", "What should I ask before an operation?"),
        (
            "Exercises for the knee begin without weight: lift the straight leg, hold it for five seconds, and repeat it ten times.",
            "Before an operation ask the doctor what happens if nothing is done, how often it was done, and who looks after you at home.",
            "A knee that swells after exercise needs a day of rest, and a doctor if it does not go down.",
            "Write down when it hurts and after what, because who treats you sees only a quarter of an hour of your week.",
        ),
    ),
    Topic(
        (
            "I do all my planning in {tool} now, the paper notebook is gone.",
            "Our team switched to {tool} and I am the one who has to teach it to everybody.",
        ),
        ("Which software did I switch to?", "What program do I use for my planning?"),
        ("How do I plan a week with many meetings?", "Explain the method of small steps."),
        (
            "Plan a week on Friday: three results that matter, then the meetings, then gaps of an hour that stay empty.",
            "Software for planning helps only if everything is in it; two places are worse than one that is poor.",
            "The method of small steps says that a task on the list must be so small that you can begin it at once.",
            "Whoever teaches a program to a team should show one real task from its begin to its end, and no menus.",
        ),
    ),
    Topic(
        (
            "In the garden the {plant} are doing well this year, everything else was eaten by slugs.",
            "I planted {plant} along the south wall and want to see what becomes of it.",
        ),
        ("What did I plant in the garden?", "Which plants grow at my house?"),
        ("How do I keep slugs away?", "When do I have to water in a hot summer?"),
        (
            "Slugs avoid rough ground and copper; a board in the garden gathers them, and you take them away in the morning.",
            "In a hot summer plants want much water twice a week rather than a little each day, early in the morning.",
            "Along a wall that looks to the south it is warm, so what grows there needs more water than in the open.",
            "Whatever you have planted, cover the earth with straw, because bare earth dries out in a day.",
        ),
    ),
    Topic(
        (
            "Our book club chose something by {author} and I have not read a page yet.",
            "I am in the middle of a novel by {author} and cannot put it down.",
        ),
        ("Which author am I reading?", "By whom is the novel that I read at the moment?"),
        ("How do I read more?", "Give me questions for a discussion in a book club."),
        (
            "Read ten pages before you look at a screen in the evening, and carry the book where you carry the phone.",
            "A good question for a book club has no answer in the text: what would have happened if nobody had come home?",
            "A novel that does not hold you after fifty pages may be put away; an author does not mind.",
            "Two books at a time, one light and one heavy, make you read more than one.",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement with a fact, its topic, and the questions that it answers."""

    topic: Topic
    statement: str
    questions: tuple[str, ...]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a template with its slots filled."""
    return text.format(**values)


def slots(text: str) -> Iterator[str]:
    """Return the names of a template's slots."""
    return (name for _, name, _, _ in Formatter().parse(text) if name)


def make_fact(random: Random, topic: Topic) -> Fact:
    """Return a fact of a topic, with values by chance."""
    values = {name: random.choice(choices) for name, choices in SLOTS.items()}
    statement = random.choice(topic.statements)
    known = set(slots(statement))
    questions = tuple(fill(one, values) for one in topic.questions if known.issuperset(slots(one)))
    return Fact(topic, fill(statement, values), questions)


def unique_facts(random: Random, most: int) -> list[Fact]:
    """Return facts no two of which answer the same question, at most ``most``."""
    facts: list[Fact] = []
    answered: set[str] = set()
    for _ in range(20 * most):
        fact = make_fact(random, random.choice(TOPICS))
        if len(facts) < most and not answered.intersection(fact.questions) and fact.questions:
            answered.update(fact.questions)
            facts.append(fact)
    return facts
