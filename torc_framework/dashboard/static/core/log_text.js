// Lines of a log as pieces of text with colours: no HTML, control sequences as colours or removed.

import Anser from "../vendor/anser.js";

/** @typedef {{text: string, classes: string, colour: string, background: string}} Piece */

export const LONGEST_LINE = 10_000;

// Sequences that are no colours: OSC (titles, links) up to BEL or ST, CSI other than "m", character sets, other escapes.
const OTHER_SEQUENCES = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[P^_X][^\x1b]*(?:\x1b\\|$)|\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b[()*+][ -~]|\x1b[ -/]*[0-Z\\^-~]/g;
// Other control characters are not shown; the tab stays.
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Return a line as a terminal would leave it: after carriage returns only the last overwrite, without other sequences.
 * @param {string} line
 */
export function shownLine(line) {
  const whole = line.replace(/\r+$/, "");
  const last = whole.slice(whole.lastIndexOf("\r") + 1);
  return last.replace(OTHER_SEQUENCES, "").replace(CONTROLS, "");
}

/**
 * Return the pieces of a line by colour.
 * @param {string} line
 * @param {number} [most] most characters
 * @returns {Piece[]}
 */
export function piecesOf(line, most = LONGEST_LINE) {
  const text = shownLine(line.length > 20 * most ? line.slice(0, 20 * most) : line);
  const cut = text.length > most ? text.slice(0, most) : text;
  if (!cut.includes("\x1b")) return [{ text: cut, classes: "", colour: "", background: "" }];
  return Anser.ansiToJson(cut, { json: true, remove_empty: true, use_classes: true }).map(pieceOf);
}

/** @param {any} piece of anser @returns {Piece} */
function pieceOf(piece) {
  const decorations = (piece.decorations ?? []).map((/** @type {string} */ each) => `ansi-${each}`);
  const names = [nameOf(piece.fg), piece.bg ? `on-${nameOf(piece.bg)}` : "", ...decorations];
  return {
    text: piece.content.replaceAll("\x1b", ""),
    classes: names.filter(Boolean).join(" "),
    colour: colourOf(piece.fg, piece.fg_truecolor),
    background: colourOf(piece.bg, piece.bg_truecolor),
  };
}

/** @param {string | null} name of a class of anser: "ansi-red", "ansi-palette-42", "ansi-truecolor" */
const nameOf = (name) => (name && /^ansi-[a-z-]+$/.test(name) && name !== "ansi-truecolor" ? name : "");

/** @param {string | null} name @param {string | null} truecolor "r, g, b" */
function colourOf(name, truecolor) {
  if (name === "ansi-truecolor" && truecolor && /^[\d, ]+$/.test(truecolor)) return `rgb(${truecolor})`;
  const number = /^ansi-palette-(\d+)$/.exec(name ?? "")?.[1];
  return number === undefined ? "" : paletteColour(Number(number));
}

/** A colour of the 256 of xterm from 16 on: a cube of 6 x 6 x 6, then 24 greys. @param {number} number */
function paletteColour(number) {
  if (number >= 232) return `rgb(${Array(3).fill(8 + 10 * (number - 232)).join(", ")})`;
  const parts = [Math.floor((number - 16) / 36), Math.floor((number - 16) / 6) % 6, (number - 16) % 6];
  return `rgb(${parts.map((part) => (part ? 55 + 40 * part : 0)).join(", ")})`;
}

/**
 * Return bytes as lines of a hex dump.
 * @param {Uint8Array} bytes
 * @param {number} offset of the first of them in the file
 */
export function hexLines(bytes, offset) {
  const lines = [];
  for (let start = 0; start < bytes.length; start += 16) {
    const row = [...bytes.subarray(start, start + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${(offset + start).toString(16).padStart(8, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  return lines;
}
