// Small components: statuses, times, amounts, names, copy buttons, notes for empty views and for errors.

import { html, useState } from "../vendor/ui.js";
import { countText, durationText, percentText, sizeText } from "../core/quantities.js";
import { agoText, exactTime, timeText } from "../core/times.js";
import { BAR_ORDER, stateLook, statusLook, statusOrder } from "../core/words.js";

/** Glyph and word of a job's status. @param {{of: string}} props */
export const Status = ({ of }) => html`<${Look} look=${statusLook(of)} name=${of} />`;

/** Glyph and word of a workflow's state. @param {{of: string}} props */
export const State = ({ of }) => html`<${Look} look=${stateLook(of)} name=${of} />`;

/** @param {{look: import("../core/words.js").Look, name: string}} props */
const Look = ({ look, name }) =>
  html`<span class=${`look look-${name}`}><span class="glyph" aria-hidden="true">${look.glyph}</span>${look.word}</span>`;

/** A time; the exact one is shown on hover. @param {{at: import("../core/times.js").Moment, ago?: boolean}} props */
export const Time = ({ at, ago = false }) =>
  at ? html`<time dateTime=${exactTime(at)} title=${exactTime(at)}>${ago ? agoText(at) : timeText(at)}</time>` : "";

/** @param {{seconds: number | null | undefined}} props */
export const Duration = ({ seconds }) =>
  seconds === null || seconds === undefined ? "" : html`<span title=${`${seconds} s`}>${durationText(seconds)}</span>`;

/** @param {{bytes: number | null | undefined}} props */
export const Size = ({ bytes }) =>
  bytes === null || bytes === undefined ? "" : html`<span title=${`${bytes} B`}>${sizeText(bytes)}</span>`;

const TAIL = 14;

/** A name that is shortened in its middle where the room is short: parameters differ at the end. @param {{text: string}} props */
export const Name = ({ text }) =>
  text.length <= TAIL + 6
    ? html`<span class="name" title=${text}>${text}</span>`
    : html`<span class="name elided" title=${text}><span class="head" aria-hidden="true">${text.slice(0, -TAIL)}</span><span class="tail" aria-hidden="true">${text.slice(-TAIL)}</span><span class="hidden">${text}</span></span>`;

/**
 * A button that copies a text.
 * @param {{text: string, label?: string}} props
 */
export function Copy({ text, label = "Copy" }) {
  const [said, say] = useState("");
  const copy = async () => {
    say((await copied(text)) ? "Copied" : "Select and copy it yourself");
    setTimeout(() => say(""), 2000);
  };
  return html`<button type="button" class="quiet small" onClick=${copy} title=${`Copy: ${text}`}>${said || label}</button>`;
}

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text); // exists on loopback and with TLS only
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

/** A command of torc with its copy button. @param {{text: string}} props */
export const Command = ({ text }) =>
  html`<span class="command"><code>${text}</code><${Copy} text=${text} label="Copy command" /></span>`;

/** What a view says when it has nothing to show. @param {{title: string, children?: any}} props */
export const Empty = ({ title, children }) =>
  html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;

/** @param {{error: Error | null | undefined}} props */
export const Failure = ({ error }) => (error ? html`<p class="failure" role="alert">${error.message}</p>` : "");

/** What stands for a view until its first answer. */
export const Loading = () => html`<p class="loading">Loading…</p>`;

/**
 * Show loaded data, or that it is under way, or why it failed. Old data stays beside an error.
 * @param {{from: import("../core/data.js").Loaded<any>, children: (data: any) => any}} props
 */
export function Shown({ from, children }) {
  if (from.data !== null) return html`<${Failure} error=${from.error} />${children(from.data)}`;
  return from.error ? html`<${Failure} error=${from.error} />` : html`<${Loading} />`;
}

/**
 * A bar with the shares of the statuses. The numbers stand in its description.
 * @param {{counts: Record<string, number>}} props
 */
export function StatusBar({ counts }) {
  const labels = statusOrder().filter((label) => counts[label]);
  const text = labels.map((label) => `${countText(counts[label])} ${statusLook(label).word}`).join(", ");
  return html`<span class="bar" role="img" aria-label=${text || "no jobs"} title=${text}>
    ${BAR_ORDER.filter((label) => counts[label]).map(
      (label) =>
        html`<span key=${label} class=${`bar-part bar-${label}`} style=${{ flexGrow: counts[label] }}></span>`,
    )}
  </span>`;
}

/**
 * Numbers by status, each a link if `href` is given.
 * @param {{counts: Record<string, number>, href?: (label: string) => string}} props
 */
export const StatusCounts = ({ counts, href }) => html`<ul class="counts">
  ${statusOrder()
    .filter((label) => counts[label])
    .map((label) => {
      const text = html`<b>${countText(counts[label])}</b> <${Status} of=${label} />`;
      return html`<li key=${label}>${href ? html`<a href=${href(label)}>${text}</a>` : text}</li>`;
    })}
</ul>`;

/** How much of an amount is used, as a bar with a text. @param {{used: number | null | undefined, of: number | null | undefined, text: string}} props */
export function Share({ used, of, text }) {
  if (used === null || used === undefined || !of) return html`<span>${text}</span>`;
  const percent = (used / of) * 100;
  return html`<span class="share" title=${percentText(percent)}>
    <span class="share-bar"><span class=${percent > 100 ? "share-over" : ""} style=${{ width: `${Math.min(100, percent)}%` }}></span></span>
    <span>${text}</span>
  </span>`;
}
