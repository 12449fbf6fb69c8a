// The first requests of the page: who reads, and the words of the server.

import { effect } from "../vendor/ui.js";
import { get, session } from "./api.js";
import { commandKinds, loadCommands } from "./orders.js";
import { words } from "./words.js";

/** Ask who reads; the page asks again by itself while the server is away. */
export async function loadSession() {
  try {
    session.value = await get("dash/session");
  } catch {
    // `server` shows it, and the page tries again
  }
}

/**
 * Load what belongs to the session, and again after a failure.
 * @param {() => Promise<void>} load
 */
async function surely(load) {
  try {
    await load();
  } catch {
    setTimeout(() => surely(load), RETRY_MS);
  }
}

const RETRY_MS = 3000;
let loadedFor = "";

effect(() => {
  const { logged_in: isIn, is_owner: isOwner, user } = session.value ?? {};
  const reader = isIn ? `${user} ${isOwner}` : "";
  if (reader === loadedFor) return;
  loadedFor = reader;
  commandKinds.value = {};
  if (isIn) surely(loadWords);
  if (isIn && isOwner) surely(loadCommands);
});

async function loadWords() {
  words.value = await get("dash/words");
}
