// The first requests of the page: who reads, and the words of the server.

import { effect } from "../vendor/ui.js";
import { get, session } from "./api.js";
import { words } from "./words.js";

/** Ask who reads; the page asks again by itself while the server is away. */
export async function loadSession() {
  try {
    session.value = await get("dash/session");
  } catch {
    // `server` shows it, and the page tries again
  }
}

effect(() => {
  if (session.value?.logged_in && !Object.keys(words.value.job_statuses).length) loadWords();
});

async function loadWords() {
  try {
    words.value = await get("dash/words");
  } catch {
    setTimeout(loadWords, 2000); // statuses are shown by their own names until then
  }
}
