/* Sentences: what may be said of a list, of recommendations and of taking part, in every state that these can be in.

Functions of the view alone, so that tests can hold each sentence to what is true in each state: whether the owner takes part,
whether anything may be sent, what has left, and whether the model knows anything yet.
*/

import { decoyRate, isBounded, mostChosen } from "../protocol/policy.js";
import { capital, counted } from "./words.js";

/** @import { View } from "../device/view.js" */

/** Whether something that is added now may be sent later, as things stand.
 * @type {(view: View) => boolean} */
export const maySend = ({ taking, choice, messages }) =>
  taking && choice.pi > 0 && !(messages && messages.made >= messages.most);

/** Why nothing is sent; only where nothing may be.
 * @type {(view: View) => string} */
function whyNot({ taking, choice }) {
  if (!taking) return "you are not taking part.";
  return choice.pi === 0 ? "you share nothing." : "this device has made all the messages it ever sends.";
}

/** Above the names to pick from.
 * @type {(view: View) => string} */
export function leadOfPicks(view) {
  const { noun } = view.federation;
  const first = view.history.length
    ? "Everything you add makes your recommendations better."
    : `Begin with three or more ${noun.many}.`;
  const then = maySend(view)
    ? "You are taking part: what you add waits half a minute before it may leave. Until then you can undo it, or mark it never to be shared."
    : `Nothing of it is sent: ${whyNot(view)}`;
  return `${first} ${then}`;
}

/** Above the names themselves, where nothing was searched for.
 * @type {(view: View) => string} */
export const leadOfNames = ({ fresh, federation: { items, noun } }) =>
  fresh ? `Some of ${counted(items, noun)}:` : `Some that many like, of ${counted(items, noun)}:`;

/** Above the recommendations; `yes` are the words of the answers that add to the list.
 * @type {(view: View, yes: string) => string} */
export function leadOfRecommendations(view, yes) {
  const how = view.fresh
    ? "The model has learnt from nobody yet, so this order is chance. It gets better as people take part."
    : "Worked out on this device, from your whole list.";
  const then = maySend(view)
    ? `${yes} add to your list, and may leave as the rest of it may. No stays here.`
    : `Nothing of it is sent: ${whyNot(view)}`;
  return `${how} ${then}`;
}

/** What came of an answer: of something that is on the list by now, or is hidden.
 * @type {(view: View, id: string, title: string) => string} */
export function answered({ history }, id, title) {
  const own = history.find((item) => item.id === id);
  if (!own) return `${title} is not shown again.`;
  if (own.waits) return `${title} is on your list, and waits half a minute before it may leave.`;
  if (own.left) return `${title} is on your list, and has left this device.`;
  return own.mayLeave ? `${title} is on your list, and may leave if you take part.` : `${title} is on your list.`;
}

/** Words for the chip at the top of the page. It is read out when it changes, so it leaves out what each round says.
 * @type {(view: View) => string} */
export function standing({ taking, progress, hurdle, pending }) {
  if (!taking) return pending ? "Not taking part; a message may still arrive" : "Not taking part: nothing is sent";
  return hurdle ?? (["waiting", "learning", "sent"].includes(progress.state) ? "Taking part" : progress.says);
}

/** Beside the button.
 * @type {(view: View) => string} */
export function nowDoing({ taking, hurdle, progress, pending }) {
  if (taking) return hurdle ?? progress.says;
  return pending
    ? "You are not taking part. A message that was on its way may still arrive; nothing new is sent."
    : "You are not taking part: nothing is sent.";
}

/** What the slider at `pi` means for this person.
 * @type {(view: View, pi: number) => string} */
export function meaningOf({ choice, sharing, history, federation }, pi) {
  const { noun } = federation;
  const many = history.length ? `your ${counted(history.length, noun)}` : `every 10 ${noun.many} you pick`;
  const n = history.length ? history.length - sharing.never : 10;
  if (pi === 0) return "Nothing leaves this device. You still get recommendations.";
  if (choice.sharing === "as-published")
    return `Each of ${many} may leave every time it comes up, with a chance of ${Math.round(pi * 100)} %: over time, nearly all will.`;
  if (choice.sharing === "deniable") {
    const q = decoyRate({ ...choice, pi });
    return `About ${Math.round(pi * n)} of ${many} may ever leave this device, among about ${counted(Math.round(q * federation.items), noun)} you did not choose. Settle your list first: what changes later can be noticed.`;
  }
  const { before, ever } = sharing;
  const may = mostChosen({ ...choice, pi }, n, before, ever);
  const basis = choice.basis === "shared" ? "" : " What is sent is still coloured by all of them.";
  /** @type {(count: number) => string} */
  const has = (count) => (count === 1 ? "has" : "have");
  if (!may && ever)
    return `None of ${many} may leave any more: ${counted(ever, noun)} ${has(ever)} left already, and that counts for life.${basis}`;
  const gone =
    isBounded({ ...choice, pi }) && ever > before
      ? ` ${capital(counted(ever - before, noun))} that you took back ${has(ever - before)} left already, and that counts for life.`
      : "";
  return `${howMany(history.length, may, many, pi, noun)}${gone}${basis}`;
}

/** @type {(length: number, may: number, many: string, pi: number, noun: { one: string }) => string} */
function howMany(length, may, many, pi, noun) {
  if (!length) return `${may === 10 ? "All" : `About ${may}`} of ${many} may ever leave this device.`;
  if (pi === 1 && may === length)
    return length === 1 ? `Your one ${noun.one} may leave this device.` : `All ${many} may leave this device.`;
  // A share of a short list is rounded up to a whole item, and of one item that is the item.
  if (length === 1 && may === 1)
    return `Your one ${noun.one} may leave this device: however low the slider, one always may.`;
  return `As your list stands, ${may} of ${many} may ever leave this device.`;
}
