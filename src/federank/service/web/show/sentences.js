/* Sentences: what may be said of a list, of recommendations and of taking part, in every state that these can be in.

Functions of the view alone, so that tests can hold each sentence to what is true in each state: whether the owner takes part,
whether anything may be sent, what has left, and whether the model knows anything yet.
*/

import { ownTriples } from "../protocol/pairs/computation.js";
import { decoyRate, isBounded, mostChosen } from "../protocol/policies/policy.js";
import { counted, named, number, say, told, together } from "./language.js";

/** @import { ShownItem, View } from "../device/view.js" */

/** What stops this device from taking part without being a hurdle of its own. */
const STOPS = ["doing.invited-enough", "doing.insecure"];

/** The states of a device that plays rounds. */
const AT_WORK = ["waiting", "learning", "sent"];

/** Whether something that is added now may be sent later, as things stand.
 * @type {(view: View) => boolean} */
export const maySend = ({ taking, choice, sealed, progress }) =>
  taking && choice.pi > 0 && !sealed && !STOPS.includes(progress.says[0]);

/** Why nothing is sent; only where nothing may be.
 * @type {(view: View) => string} */
function whyNot({ taking, choice, messages }) {
  if (!taking) return say("why.away");
  if (choice.pi === 0) return say("why.nothing");
  return say(messages && messages.made >= messages.most ? "why.spent" : "why.hurdle");
}

/** Above the names to pick from.
 * @type {(view: View) => string} */
export function leadOfPicks(view) {
  const { scale, noun } = view.federation;
  const begin = scale ? say("pick.first-stars", named(noun)) : say("pick.first", named(noun));
  const first = view.history.length ? say(scale ? "pick.more-stars" : "pick.more") : begin;
  return together(first, maySend(view) ? say("pick.waits") : say("not-sent", { why: whyNot(view) }));
}

/** Above the names themselves, where nothing was searched for.
 * @type {(view: View) => string} */
export const leadOfNames = ({ fresh, federation: { items, noun, scale } }) =>
  say(fresh ? "pick.some" : scale ? "pick.rated" : "pick.popular", { counted: counted(items, noun) });

/** What somebody would give an item that they have not rated; nothing where nothing can be said.
 * @type {(item: Pick<ShownItem, "predicted">) => string} */
export function wouldGive({ predicted }) {
  if (!predicted) return "";
  return say(predicted.isMean ? "stars.mean" : "stars.would-give", { stars: number(predicted.rating, 1) });
}

/** Above the recommendations. That nothing is sent, where it is so, stands above the names to pick from, and why.
 * @type {(view: View) => string} */
export function leadOfRecommendations(view) {
  const { scale } = view.federation;
  const how = say(view.fresh ? (scale ? "for-you.unlearnt" : "for-you.chance") : "for-you.worked-out");
  return together(how, maySend(view) ? say(scale ? "for-you.may-leave-stars" : "for-you.may-leave") : "");
}

/** What came of an answer: of something that is on the list by now, or is hidden.
 * @type {(view: View, id: string, title: string) => string} */
export function answered({ history }, id, title) {
  const own = history.find((item) => item.id === id);
  if (!own) return say("answered.hidden", { title });
  if (own.waits) return say("answered.waits", { title });
  if (own.left) return say("answered.left", { title });
  return say(own.mayLeave ? "answered.may-leave" : "answered.stays", { title });
}

/** Whether a round cannot begin because the helper does not answer the leader. A task that has come can still be played.
 * @type {(progress: View["progress"], helperAway: boolean) => boolean} */
const waitsForHelper = ({ state }, helperAway) => helperAway && state === "waiting";

const nothingCanBeSent = () => say("doing.retrying", { reason: ["sums.helper-unreachable"] });

/** Words for the chip at the top of the page. It is read out when it changes, so it leaves out what each round says.
 * @type {(view: View) => string} */
export function standing({ taking, progress, hurdle, pending, helperAway }) {
  if (!taking) return say(pending ? "standing.late" : "standing.away");
  if (hurdle) return hurdle[0] === "hurdle.spent" ? say("standing.spent") : told(hurdle);
  if (waitsForHelper(progress, helperAway)) return nothingCanBeSent();
  return AT_WORK.includes(progress.state) ? say("standing.on") : told(progress.says);
}

/** Whether the light beside them is on: messages are made and sent, as far as this device knows.
 * @type {(view: View) => boolean} */
export const isOn = ({ taking, progress, hurdle, helperAway }) =>
  taking && !hurdle && AT_WORK.includes(progress.state) && !waitsForHelper(progress, helperAway);

/** Beside the button.
 * @type {(view: View) => string} */
export function nowDoing({ taking, hurdle, progress, pending, helperAway }) {
  if (taking && !hurdle && waitsForHelper(progress, helperAway)) return nothingCanBeSent();
  if (taking) return told(hurdle ?? progress.says);
  return say(pending ? "sharing.late" : "sharing.away");
}

/** How many messages there will ever be, where they are counted.
 * @type {(view: View) => string} */
export function lifetime({ messages: life, plain }) {
  if (!life) return "";
  const { made, received, released, most } = life;
  const messages = say(plain ? "messages" : "messages-counted", { count: most });
  const key = made !== received ? "lifetime.made" : made ? "lifetime.sent" : "lifetime.none";
  const sent = say(key, { messages, made, received });
  return together(sent, released ? say("lifetime.released", { count: released }) : "");
}

/** A bound is rounded up, so that it still is one.
 * @type {(epsilon: number) => string} */
export function bound(epsilon) {
  const digits = epsilon >= 10 ? 0 : epsilon >= 1 ? 1 : 2;
  return number(Math.ceil(epsilon * 10 ** digits) / 10 ** digits, digits);
}

/** Who can read a message, and what all of them together can tell; in the federation as it is, whatever was sent.
 * @type {(view: View) => string} */
export function promise(view) {
  const { plain, promised } = view;
  const namesRated = view.federation.namesRated;
  const often = lifetime(view);
  if (plain) return together(say("promise.plain"), namesRated ? say("promise.names-rated") : "", often);
  if (!promised) return together(say("promise.unchecked"), often);
  const { epsilon } = promised;
  const what = epsilon === null ? say("promise.unbounded") : say("promise.bounded", { epsilon: bound(epsilon) });
  return together(often, whoReads(promised), what);
}

/** @type {(promised: NonNullable<View["promised"]>) => string} */
function whoReads({ together: both, helper }) {
  if (both === null) return say("promise.apart");
  return both === "machine" ? say("promise.one-machine") : say("promise.one-host", { host: new URL(helper).hostname });
}

/** The same in full, a sentence or two for each question that it leaves open; nothing where the server reads messages.
 * @type {(view: View, leader: string) => [title: string, words: string][]} */
export function promiseInFull({ promised, messages }, leader) {
  if (!promised) return [];
  const { helper, fingerprint, leastCohort, epsilon, delta } = promised;
  const apart = say(promised.together === null ? "full.apart" : "full.together");
  return [
    [say("full.split"), say("full.split-words")],
    [say("full.who"), say("full.who-words", { leader, helper, apart, fingerprint })],
    [say("full.sums"), say("full.sums-words", { messages: say("messages", { count: leastCohort }) })],
    epsilon === null
      ? [say("full.no-epsilon"), say("full.no-epsilon-words")]
      : [
          say("full.epsilon", { epsilon: bound(epsilon) }),
          say("full.epsilon-words", {
            likely: Math.ceil(Math.exp(epsilon)),
            chances: Math.round(1 / delta),
            messages: say("messages", { count: messages?.most ?? 0 }),
          }),
        ],
    [say("full.uncovered"), say("full.uncovered-words")],
    [say("full.unreachable"), say("full.unreachable-words", { helper })],
  ];
}

/** Whom the page talks to.
 * @type {(view: View) => string} */
export const talksTo = ({ promised }) =>
  promised ? say("foot.talks-helper", { helper: promised.helper }) : say("foot.talks");

/** What the slider at `pi` means for this person.
 * @type {(view: View, pi: number) => string} */
export function meaningOf({ choice, sharing, history, federation, sealed }, pi) {
  if (sealed) return say("share.sealed");
  const { noun } = federation;
  const many = history.length
    ? say("share.yours", { counted: counted(history.length, noun) })
    : say("share.every-ten", named(noun));
  const n = history.length ? history.length - sharing.never : 10;
  if (pi === 0) return say("share.nothing");
  if (choice.sharing === "all") return say("share.coin", { many, percent: Math.round(pi * 100) });
  if (choice.sharing === "randomized-response") {
    const decoys = counted(Math.round(decoyRate({ ...choice, pi }) * federation.items), noun);
    return say("share.randomized-response", { count: Math.round(pi * n), many, decoys });
  }
  const { before, ever } = sharing;
  const may = mostChosen({ ...choice, pi }, n, before, ever);
  const basis = choice.basis === "shared" ? "" : say("share.coloured");
  if (!may && ever) return together(say("share.used-up", { count: ever, many, gone: counted(ever, noun) }), basis);
  const gone =
    isBounded({ ...choice, pi }) && ever > before
      ? say("share.taken-back", { count: ever - before, gone: counted(ever - before, noun) })
      : "";
  return together(howMany(history.length, may, many, pi, named(noun)), gone, basis);
}

/** @type {(length: number, may: number, many: string, pi: number, noun: { item: string }) => string} */
function howMany(length, may, many, pi, noun) {
  if (!length) return may === 10 ? say("share.all-of-ten", { many }) : say("share.about", { count: may, many });
  if (pi === 1 && may === length) return length === 1 ? say("share.one", noun) : say("share.all", { many });
  // A share of a short list is rounded up to a whole item, and of one item that is the item.
  if (length === 1 && may === 1) return say("share.one-always", noun);
  return say("share.some", { count: may, many });
}

/** Where pairs are learnt from: what they are, how many of them a new message is made from and how much it holds, and what more of them
change.
 * @type {(view: View) => { what: string, howMany: string, more: string }} */
export function pairsInWords({ choice, federation }) {
  const pairs = federation.pairs ?? { triples: 0, mostTriples: 0 };
  const { mostTriples: most } = pairs;
  const { triples: wish = null } = choice;
  const count = ownTriples(pairs, wish);
  const held = counted(Math.min(2 * count, federation.items), federation.noun);
  return {
    what: say(choice.basis === "shared" ? "pairs.of-shared" : "pairs.of-list"),
    howMany: together(
      wish !== null && wish > most ? say("pairs.cut", { wish, most }) : "",
      say("pairs.now", { count, held }),
    ),
    more: say("pairs.more", named(federation.noun)),
  };
}

/** What has left, in one sentence.
 * @type {(view: View) => string} */
export function whatHasLeft({ history, rounds, federation, plain, sharing }) {
  if (!rounds.length) return say("left.nothing");
  const count = history.filter((item) => item.left).length;
  const messages = say("messages", { count: rounds.length });
  const removed = sharing.ever - count;
  const held = rounds.filter(({ outcome }) => outcome.startsWith("held back")).length;
  return together(
    leftOf(plain, count, counted(history.length, federation.noun), messages),
    removed > 0 ? say("left.removed", { count: removed, gone: counted(removed, federation.noun) }) : "",
    held ? say("left.held-back", { count: held }) : "",
  );
}

/** @type {(plain: boolean, count: number, all: string, messages: string) => string} */
function leftOf(plain, count, all, messages) {
  return say(plain ? "left.some" : "left.in-sums", { count, counted: all, messages });
}
