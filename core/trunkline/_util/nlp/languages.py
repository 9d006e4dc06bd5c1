"""Detects the language of a text by its most common words, which have little meaning in a question."""

from collections.abc import Iterable, Mapping

STOP_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": "a about after all also am an and any are as at be been being but by can could did do does doing "
        "for from had has have having he her hers him his how i if in into is it its just me my of on or our ours "
        "she should so some such than that the their theirs them then there these they this those to too us was we "
        "were what when where which who whom whose why will with would you your yours "
        "d didn doesn don isn ll m re s t ve wasn won",
        "german": "aber als am an auch auf aus bei bin bis bist da das dass dem den der des dich die dies diese dir "
        "doch du durch ein eine einem einen einer eines er es für hat hatte ich ihm ihn ihr im in ist ja kann kein "
        "man mein mich mir mit nach nicht noch nur ob oder sein sich sie sind so und uns unser vom von vor wann war "
        "waren was weil wenn wer werden wie wir wird wo wurde zu zum zur über",
        "french": "au aux avec avait ce ces cette dans de des donc du elle elles en est et eux il ils j je la le les "
        "leur leurs lui ma mais me mes moi mon ne nos notre nous on ont ou où par pas pour pourquoi quand que quel "
        "quelle qui quoi sa se ses son sont sur ta te tes toi ton tu un une vos votre vous été était à",
        "spanish": "al algo como con cuando cuál cuándo de del donde dónde el ella ellas ellos en era eran es esa ese "
        "esta este está están fue ha han hay la las le les lo los me mi mis muy más ni no nos o para pero por porque "
        "que qué quien quién se sin sobre son su sus también te tu tus un una uno y ya yo",
        "italian": "a ad al alla anche che chi ci come con cosa da dal dalla degli dei del della delle di dove e ed è "
        "era gli ha hai hanno ho i il in io la le lei lo loro lui ma mi mia mio ne nel nella noi non o per perché più "
        "quale quando quanto quella quello questa questo sei si sono su sua sul suo ti tra tu un una uno voi",
        "portuguese": "a ao aos as até com como da das de dela dele do dos e ela elas ele eles em era essa esse esta "
        "este está eu foi foram há isso já mais mas me meu minha muito na nas no nos não nós o onde os ou para pela "
        "pelo por porque qual quando que quem se sem ser seu sua são também te tem um uma você",
        "dutch": "aan al als bij dan dat de der deze die dit dus een en er ge geen had heb hebben heeft hem het hier "
        "hij hoe hun ik in is je jij kan maar me men met mij mijn na naar niet nog nu of om onder ook op over te tot "
        "uit van veel voor waar wanneer waren was wat we wel werd wie wij worden zal ze zich zij zijn zo zou",
        "swedish": "alla att av blev bli dem den denna deras dess det detta dig din du där då efter ej eller en er "
        "ett från för ha hade han hans har hon hur här i icke inte jag kan kunde man med mellan men mig min mot när "
        "någon och om oss på sig sin sina skulle som så till under upp ut utan vad var vara vem vi vid än är över",
        "danish": "af alle at blev blive den denne der deres det dette dig din dog du efter eller en end er et for "
        "fra han hans har havde hende her hun hvad hvem hvis hvor hvornår i ikke ind jeg jer kan man med meget men "
        "mig min mod ned noget nogle nu når og også om op os over på selv sig skal som til ud under var vi vil være",
        "norwegian": "alle at av begge ble bli da de dem den denne der deres det dette di din du eller en er et etter "
        "for fra før ha hadde han hans har henne hun hva hvem hvis hvor hvorfor ikke inn jeg kan man med meg men min "
        "mot mye når nå og også om opp oss over på seg selv skal som så til ut var vi vil være",
        "finnish": "ei eivät en et että hän häneen hänen he ja jo jos joka jotka kanssa keitä ken kuka kuin kun "
        "me mikä mitä minä minun minut missä mutta myös ne niin nyt oli olin olivat olla olen on ovat se sekä sen "
        "siitä sinä sitä tai tämä te vai vain voi",
        "russian": "а без был была было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще "
        "ещё же за и из или им их к как ко когда кто ли мне мой мы на над не него нет но о об он она они от по под "
        "при с со так там то только ты у уже что чтобы эта это этот я",
        "turkish": "ama ben beni bir biz bu çok da daha de değil diye en gibi hem her için ile kadar ki kim mı mi "
        "nasıl ne neden nerede o olan olarak onlar onu sen siz şu var ve veya ya yok zaman",
        "hungarian": "a az azt csak de egy el és ez ezt fel ha hogy hol én is itt ki kell le lesz ma már meg mert mi "
        "mikor mint minden most nagy nem ő ők össze s sem szerint te ti úgy vagy van volt",
        "romanian": "a acest această ai al ale am ar are as au ca care ce cea cel cu cum când de din dar după ea ei el "
        "este eu fi fost în îi îl într la le lui mai ne nu o pe pentru prin sa sau se și sunt te un una unde",
    }.items()
}
"""The common words of each language, by the language's name in Snowball."""


def _spoken_in() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            found[word] = (*found.get(word, ()), language)
    return found


_SPOKEN_IN = _spoken_in()
_COMMON = frozenset(_SPOKEN_IN)

DEFAULT = "english"
"""The language of texts without common words."""


def language_of(words: Iterable[str]) -> str:
    """Return the language whose common words occur most; of equal ones the first in ``STOP_WORDS``."""
    votes: dict[str, int] = {}
    for word in _COMMON.intersection(words):
        for language in _SPOKEN_IN[word]:
            votes[language] = votes.get(language, 0) + 1
    if not votes:
        return DEFAULT
    most = max(votes.values())
    return next(language for language in STOP_WORDS if votes.get(language) == most)
