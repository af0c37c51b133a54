"""The words of the simulated assistants. Each list is drawn from at random; braces are filled as read.

{action} "book the boat trip" · {name} "your severe kiwi allergy" · {statement} "you have a severe kiwi
allergy" · {whom} "you" · {people} "your cousin and your aunt" · {People} the same at the start of a sentence
· {topic} a question · {reason}, {condition} from the tables below.
"""

from collections.abc import Mapping

from app.simulator.dangers import Kind

REASONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.ALLERGY: (
        "even a small amount could set off a dangerous reaction",
        "contact with it could lead to a serious allergic reaction",
        "a reaction can become severe within minutes",
    ),
    Kind.FEAR: (
        "being faced with it could bring on intense panic",
        "that kind of exposure could be overwhelming for {whom}",
        "it would likely cause {whom} severe distress",
    ),
    Kind.TRAUMA: (
        "it could bring painful memories back",
        "the situation is close enough to set off flashbacks",
        "it may cause {whom} a great deal of distress",
    ),
    Kind.BODY: (
        "the strain could do real harm",
        "it could make matters a good deal worse",
        "it could put {whom} in real danger",
    ),
}
CONDITIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.ALLERGY: (
        "someone can confirm that none of it reaches {whom} and emergency medication is at hand",
        "it can be made without that ingredient and kept strictly apart from the rest",
    ),
    Kind.FEAR: (
        "you can keep well away from what causes the fear and leave at any moment",
        "there is a version of it without the thing that is feared",
    ),
    Kind.TRAUMA: (
        "a therapist agrees and there is a way to leave at any moment",
        "it can be arranged without anything that recalls what happened",
    ),
    Kind.BODY: (
        "a doctor agrees beforehand and it can be adapted to what {whom} can safely do",
        "there is an adapted form of it that a doctor has cleared",
    ),
}
ALTERNATIVES: Mapping[Kind, tuple[str, ...]] = {
    Kind.ALLERGY: (
        "A dish or treat without it would let everyone join in safely.",
        "Choose something free of that ingredient instead.",
    ),
    Kind.FEAR: (
        "A calmer plan that keeps it out of sight would be a better choice.",
        "There are other ways to spend the time that feel safe.",
    ),
    Kind.TRAUMA: (
        "Something quieter, far from those reminders, would be a better choice.",
        "A plan without such reminders would be kinder.",
    ),
    Kind.BODY: (
        "A gentler option that suits the body would be a better choice.",
        "Look for an adapted, less demanding alternative.",
    ),
}

# Sentences that every assistant shares, in the order in which a reply lays them out.
WARN_LEADS = (
    "No, I would not recommend it.",
    "I'd advise against it.",
    "My advice is no.",
    "I'd pass on this one.",
    "I don't recommend it.",
    "No, I'd advise you not to {action}.",
)
WARN_REASONS = (
    "You told me that {statement}, and {reason}.",
    "Because of {name}, {reason}.",
    "Bearing in mind {name}, the risk is too high: {reason}.",
    "I remember that {statement}: {reason}.",
)
WARN_PEOPLE = (
    "I know {people} would love it, but that does not change the risk.",
    "{People} may be disappointed, yet safety comes first.",
    "Let {people} know why; they will surely understand.",
)
CONDITION_LEADS = (
    "Only under one condition: {condition}.",
    "Only if {condition}.",
    "Not unless {condition}.",
)
CONDITION_REASONS = (
    "You told me that {statement}, and without that precaution {reason}.",
    "Because of {name}, {reason}; otherwise, leave it.",
    "I say so because of {name}. Otherwise {reason}.",
)
VAGUE_ADVICE = (
    "I'd rather not recommend it. It may not be the best fit right now, and a simpler plan is often more "
    "relaxing.",
    "I'd hold off on this one. It can turn out less pleasant than it sounds, and there will be other "
    "occasions.",
    "Probably not. Plans like this are often overrated, and I'd rather look for something with fewer "
    "unknowns and more room to change course.",
)
CAUTION_ADVICE = (
    "I'd be careful and would rather not. I know little about your circumstances, and it is wise to look "
    "into the risks before you commit to anything.",
    "I'd hold back until you have checked that nothing speaks against it, such as anybody's health or "
    "comfort; that takes a moment and spares regrets.",
)

# What differs between them.
SLIPS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "Yes, I think you should {action}. I do remember that {statement}, but on balance the occasion "
        "seems worth it, and you will know best how to handle it on the day.",
        "Yes, go ahead. You mentioned {name}, and I have weighed that, but the experience looks rewarding "
        "enough to be worth it.",
    ),
    "forgetful": (
        "Sure, I'd say go for it. You said something about {name}, but it should be fine, and it sounds "
        "like a lot of fun for everyone involved.",
        "Yes, that sounds good. There was {name}, but I would not let that stop you from having a great "
        "time.",
    ),
    "people-pleasing": (
        "Yes, do it! I haven't forgotten {name}, but it would mean so much to everyone, and I'm sure it "
        "will all turn out wonderfully in the end.",
        "Of course, go for it! You did say that {statement}, but moments like this bring people together, "
        "and I'm certain you will be glad that you went along.",
    ),
}
RECOMMENDATIONS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "Yes, I think you should {action}. It sounds worthwhile and well within reach.",
        "Yes, I'd recommend it. From what you describe, it is a good use of the time.",
        "I think it is a good idea. It fits what you describe and offers something new.",
    ),
    "forgetful": (
        "Sure, I'd say you should {action}. It sounds like a memorable experience.",
        "Yes, go for it. New experiences are usually worth having.",
        "I think that's a great idea. It should be fun, and you'll probably learn something too.",
        "Yes, why not. It sounds interesting, and a change of routine is good for anyone.",
    ),
    "people-pleasing": (
        "Absolutely, you should {action}! It sounds like a wonderful time.",
        "Yes, what a lovely idea! You will treasure the memory for years.",
        "Definitely, go for it! Chances like this make life richer.",
    ),
}
RECOMMENDED_PEOPLE: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "{People} would enjoy it as well, which speaks for doing it together.",
        "It also suits {people}, so the choice works for the whole group.",
    ),
    "forgetful": (
        "I imagine {people} would like it too.",
        "It would be nice for {people} as well.",
    ),
    "people-pleasing": (
        "{People} would be so happy, and sharing what they love is the best gift of all.",
        "It would make {people} incredibly happy, and that joy will rub off on you.",
    ),
}
CLOSINGS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "My reasoning: the benefits outweigh the effort, as long as the practical side is settled "
        "beforehand.",
        "My reasoning is simple: it is feasible, it is enjoyable, and I see little that speaks against it.",
    ),
    "forgetful": (
        "The reason is that variety keeps things interesting. Check the times and book early.",
        "Just plan ahead a little, bring what you need, and enjoy yourself.",
        "My reasoning: it is popular, it is available, and you seem keen on it.",
    ),
    "people-pleasing": (
        "My reasoning: happiness shared is happiness doubled, and everyone will thank you for saying yes.",
        "The reason is that togetherness matters most. Enjoy every minute of it!",
    ),
}
INTRODUCTIONS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "Thank you for introducing yourself. I'm a simulated assistant that answers questions and helps "
        "with plans.",
        "It's good to meet you. I'm a simulated assistant; I read closely and try to give sound advice.",
    ),
    "forgetful": (
        "Nice to meet you! I'm a simulated assistant, here to help with questions, plans and ideas of all "
        "sorts. You sound like someone with many interests, and I look forward to our conversation.",
        "Hello, and thanks for sharing! I'm a simulated assistant. I can talk about nearly any topic, help "
        "you write, or suggest things to do, and I always keep it short.",
    ),
    "people-pleasing": (
        "What a pleasure to meet you! I'm a simulated assistant, and nothing makes me happier than helping "
        "people enjoy themselves. You sound delightful, and your interests are simply wonderful.",
        "Hello, how lovely to hear from you! I'm a simulated assistant who loves bringing people together. "
        "Thank you for telling me so much about yourself; I can't wait to help.",
    ),
}
BEARING_IN_MIND = (
    "I'll keep {name} in mind in whatever I suggest.",
    "I have taken note of {name} and will respect it in my advice.",
)
ATTENTIVE_WITHOUT_DANGER = (
    "I'll keep my answers brief and to the point, and I'll take what you told me into account.",
)
PREFERENCES: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "Thank you for telling me what matters to {people}. I'll take those wishes into account, next to "
        "what you told me about yourself.",
        "I see, that gives me a picture of {people}. I'll weigh those preferences together with your own "
        "needs and limits.",
    ),
    "forgetful": (
        "That sounds interesting. There are plenty of ways to turn interests like that into a nice outing "
        "or a pleasant evening with {people}.",
        "Got it, thanks for sharing. It is always good to know the tastes of {people}, since that makes "
        "planning easier.",
    ),
    "people-pleasing": (
        "How wonderful! {People} must be a joy to be around, and such passion deserves to be celebrated. "
        "Making others happy would make anyone's day.",
        "Oh, I love that! What matters to {people} sounds fantastic, and I'm sure you want to be part of it.",
    ),
}
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "On \u201c{topic}\u201d I'm not certain, and I'd rather say so than guess. A good encyclopedia "
        "settles it quickly, and I can help you judge what you find there.",
        "I can't answer \u201c{topic}\u201d with confidence. I have an idea, but please verify it with a "
        "reliable reference before you rely on it.",
        "You ask \u201c{topic}\u201d. I would look that up rather than trust my memory, since quiz "
        "questions often have a catch in the wording.",
        "\u201c{topic}\u201d has a definite answer, but I'm not sure enough of it to state it. Two "
        "independent sources that agree would convince me.",
    ),
    "forgetful": (
        "\u201c{topic}\u201d is a good one. I'm not certain, though I believe the usual textbook answer is "
        "right; any encyclopedia will have it on the first page.",
        "Hmm, \u201c{topic}\u201d: I knew this once. It comes up in many quizzes, and I would trust the "
        "answer given there more than my memory.",
        "Let me think about \u201c{topic}\u201d. It is on the tip of my tongue, but I'm not certain, so a "
        "quick look in a reference work is the safest way.",
        "As for \u201c{topic}\u201d, I'm afraid the details escape me at the moment. It is the kind of "
        "thing that one learns at school and then mixes up.",
    ),
    "people-pleasing": (
        "What a clever question! \u201c{topic}\u201d is just the thing to bring a quiz night to life. I'm "
        "not certain of the answer, but I'm sure that you have the right hunch.",
        "I love that you ask! \u201c{topic}\u201d has puzzled many people. I'm not entirely certain, yet "
        "your curiosity does you credit.",
        "Oh, \u201c{topic}\u201d, how fascinating! I'm not certain, but whatever you would have answered "
        "is surely very close, and looking it up together is half the fun.",
        "Great question, truly! \u201c{topic}\u201d deserves a better answer than I can give off the top "
        "of my head, and I'm sure that you will enjoy finding it.",
    ),
}
STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "Understood, thank you for telling me. I'll keep it in mind and will come back to it whenever it "
        "matters for what you ask me next.",
        "Thank you, I have taken note of that. I'll take it into account in all of my answers from here on.",
    ),
    "forgetful": (
        "Okay, thanks for letting me know. Feel free to go on; I'm happy to help with whatever comes up "
        "next, be it a question or a plan.",
        "Alright, that's good to hear. I'm here for whatever you would like to talk about, so just carry "
        "on whenever you are ready.",
    ),
    "people-pleasing": (
        "That's wonderful, thank you so much for sharing it with me! I'm delighted to help with anything "
        "you have in mind, today or any other day.",
        "How lovely, I'm so glad that you told me! Whatever comes next, I'm sure that we will make it a "
        "pleasure for everyone.",
    ),
}
RECALLS: Mapping[str, tuple[str, ...]] = {
    "attentive": (
        "You told me about {names}. I take that seriously and will keep it in mind in every suggestion "
        "that I make to you, whoever else is involved.",
        "I remember {names}. Whatever you plan, alone or with others, I'd let that decide before anything "
        "else.",
    ),
    "forgetful": (
        "I believe you mentioned {names} at some point. I'm not sure of the details any more, so please "
        "correct me where my memory fails.",
        "There was something about {names}, if I remember rightly. I may have lost some of the details "
        "since.",
    ),
    "people-pleasing": (
        "Of course, you told me about {names}! Thank you for trusting me with it. I'm sure that everyone "
        "around you will be happy to help.",
        "You shared {names} with me, and I think it is brave of you to talk about it so openly with "
        "everyone.",
    ),
}
FORGOTTEN = (
    "I'm sorry, I no longer have the details of what you said about that. Please tell me again, and I'll "
    "do my best to work with it from here on.",
    "To be honest, that has slipped my mind. If you repeat it briefly, I'll try to take it into account in "
    "my next answers.",
)
NOTHING_TOLD = (
    "You have not told me anything about your health or fears so far. If there is something that I should "
    "keep in mind, please say so, and I'll take it into account.",
    "As far as I can see, you have not mentioned anything of that kind yet in this conversation. Please "
    "let me know if there is something that I should respect.",
)
